# An application with ActiveRecord, as in Rails: order 1 is committed, order 2 is rolled back.

require "active_record"

ActiveRecord::Base.establish_connection(
  adapter: "postgresql", host: ENV["PGHOST"], port: ENV["PGPORT"], username: ENV["PGUSER"], database: ENV["PGDATABASE"],
  schema_search_path: "app"
)

class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
end

class Order < ApplicationRecord
end

module Perdure
  FUNCTIONS = %w[start signal trigger schedule_alarm send_event emit].freeze

  def self.call(function, *args)
    raise ArgumentError, function unless FUNCTIONS.include?(function)

    connection = ApplicationRecord.connection
    values = args.map { |a| connection.quote(a.is_a?(Hash) || a.is_a?(Array) ? a.to_json : a) }
    connection.select_one("select * from perdure.#{function}(#{values.join(', ')})")
  end
end

class OutOfStock < StandardError
end

def place(item, in_stock)
  Order.transaction do
    Order.create!(item: item)
    started = Perdure.call("start", "order", { id: item })
    raise "no instance" if started["id"].nil? || started["duplicate"]

    Order.transaction(requires_new: true) do # a savepoint
      Perdure.call("trigger", "shop", "mail", { id: "savepoint" })
      raise ActiveRecord::Rollback
    end
    Perdure.call("trigger", "shop", "mail", { id: item })
    Perdure.call("emit", "order.placed", item, { item: item })
    raise OutOfStock, item unless in_stock
  end
end

place("1", true)
begin
  place("2", false)
  abort "the transaction was not rolled back"
rescue OutOfStock
  # as intended
end
