"""An application with psycopg 3: order 1 is committed, order 2 is rolled back."""

import os

import psycopg
from psycopg.types.json import Jsonb


class OutOfStock(Exception):
    pass


def place(conn, item, in_stock):
    with conn.transaction():
        conn.execute("insert into app.orders (item) values (%s)", [item])
        instance, duplicate = conn.execute("select id, duplicate from perdure.start(%s, %s)", ["order", Jsonb({"id": item})]).fetchone()
        assert instance is not None and not duplicate
        conn.execute("select perdure.trigger('shop', 'mail', %s)", [Jsonb({"id": item})])
        conn.execute("select perdure.emit('order.placed', %s, %s)", [item, Jsonb({"item": item})])
        if not in_stock:
            raise OutOfStock(item)


with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as conn:
    place(conn, "1", in_stock=True)
    try:
        place(conn, "2", in_stock=False)
        raise SystemExit("the transaction was not rolled back")
    except OutOfStock:
        pass
    try:
        conn.execute("select perdure.start('unknown', '{}')")
        raise SystemExit("an unknown machine was started")
    except psycopg.errors.NoDataFound as error:
        assert "is not known" in str(error), error
