"""An application with Django: order 1 is committed, order 2 is rolled back."""

import json
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "USER": os.environ["PGUSER"],
            "NAME": os.environ["PGDATABASE"],
            "OPTIONS": {"options": "-c search_path=app"},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import connection, models, transaction  # noqa: E402


class Order(models.Model):
    item = models.TextField()

    class Meta:
        app_label = "app"
        db_table = "orders"


def perdure(function, *args):
    """Calls a function of Perdure in the current transaction and returns its row."""
    values = [json.dumps(a) if isinstance(a, (dict, list)) else a for a in args]
    with connection.cursor() as cursor:
        cursor.execute(f"select * from perdure.{function}({', '.join(['%s'] * len(values))})", values)
        return cursor.fetchone()


class OutOfStock(Exception):
    pass


def place(item, in_stock):
    with transaction.atomic():
        Order.objects.create(item=item)
        instance, duplicate = perdure("start", "order", {"id": item})
        assert instance is not None and not duplicate
        try:
            with transaction.atomic():  # a savepoint
                perdure("trigger", "shop", "mail", {"id": "savepoint"})
                raise OutOfStock(item)
        except OutOfStock:
            pass
        perdure("trigger", "shop", "mail", {"id": item})
        perdure("emit", "order.placed", item, {"item": item})
        if not in_stock:
            raise OutOfStock(item)


place("1", in_stock=True)
try:
    place("2", in_stock=False)
    raise SystemExit("the transaction was not rolled back")
except OutOfStock:
    pass
