# Written by delayctl from "topology.yaml": change that file, and export again.
# The broker and the login come from RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD.
# Not in here, since the file marks them as existing:
#   exchange "legacy.exchange"

terraform {
  required_version = ">= 1.4"
  required_providers {
    rabbitmq = {
      source  = "cyrilgdn/rabbitmq"
      version = ">= 1.8.0"
    }
  }
}

resource "rabbitmq_exchange" "delay_1m_exchange" {
  name  = "delay.1m.exchange"
  vhost = "/"

  settings {
    type        = "fanout"
    durable     = true
    auto_delete = false
  }
}

resource "rabbitmq_exchange" "delay_5m_exchange" {
  name  = "delay.5m.exchange"
  vhost = "/"

  settings {
    type        = "fanout"
    durable     = true
    auto_delete = false
  }
}

resource "rabbitmq_exchange" "delay_exchange" {
  name  = "delay.exchange"
  vhost = "/"

  settings {
    type        = "topic"
    durable     = true
    auto_delete = false
    arguments   = { "alternate-exchange" = "delay.unrouted.exchange" }
  }

  depends_on = [
    rabbitmq_binding.delay_unrouted_exchange_to_delay_unrouted_queue_b678ff656e,
  ]
}

resource "rabbitmq_exchange" "delay_unrouted_exchange" {
  name  = "delay.unrouted.exchange"
  vhost = "/"

  settings {
    type        = "fanout"
    durable     = true
    auto_delete = false
  }
}

resource "rabbitmq_exchange" "orders_exchange" {
  name  = "orders.exchange"
  vhost = "/"

  settings {
    type        = "topic"
    durable     = true
    auto_delete = false
  }
}

resource "rabbitmq_queue" "delay_1m_queue" {
  name  = "delay.1m.queue"
  vhost = "/"

  settings {
    durable     = true
    auto_delete = false

    arguments_json = jsonencode({ "x-queue-type" = "classic", "x-message-ttl" = 60000, "x-max-length" = 1000000, "x-overflow" = "drop-head", "x-dead-letter-exchange" = "delay.exchange" })
  }

  depends_on = [
    rabbitmq_exchange.delay_exchange,
  ]
}

resource "rabbitmq_queue" "delay_5m_queue" {
  name  = "delay.5m.queue"
  vhost = "/"

  settings {
    durable     = true
    auto_delete = false

    arguments_json = jsonencode({ "x-queue-type" = "classic", "x-message-ttl" = 300000, "x-max-length" = 1000000, "x-overflow" = "drop-head", "x-dead-letter-exchange" = "delay.exchange" })
  }

  depends_on = [
    rabbitmq_exchange.delay_exchange,
  ]
}

resource "rabbitmq_queue" "delay_unrouted_queue" {
  name  = "delay.unrouted.queue"
  vhost = "/"

  settings {
    durable     = true
    auto_delete = false
  }
}

resource "rabbitmq_queue" "orders_queue" {
  name  = "orders.queue"
  vhost = "/"

  settings {
    durable     = true
    auto_delete = false
  }
}

resource "rabbitmq_binding" "delay_1m_exchange_to_delay_1m_queue_1a94b55f09" {
  vhost            = "/"
  source           = rabbitmq_exchange.delay_1m_exchange.name
  destination      = rabbitmq_queue.delay_1m_queue.name
  destination_type = "queue"
  routing_key      = ""

  depends_on = [
    terraform_data.ways_out,
  ]
}

resource "rabbitmq_binding" "delay_5m_exchange_to_delay_5m_queue_e4e374722f" {
  vhost            = "/"
  source           = rabbitmq_exchange.delay_5m_exchange.name
  destination      = rabbitmq_queue.delay_5m_queue.name
  destination_type = "queue"
  routing_key      = ""

  depends_on = [
    terraform_data.ways_out,
  ]
}

resource "rabbitmq_binding" "delay_exchange_to_orders_queue_dff90da522" {
  vhost            = "/"
  source           = rabbitmq_exchange.delay_exchange.name
  destination      = rabbitmq_queue.orders_queue.name
  destination_type = "queue"
  routing_key      = "old"
}

resource "rabbitmq_binding" "delay_exchange_to_orders_queue_1b4c387b8d" {
  vhost            = "/"
  source           = rabbitmq_exchange.delay_exchange.name
  destination      = rabbitmq_queue.orders_queue.name
  destination_type = "queue"
  routing_key      = "order.created"
}

resource "rabbitmq_binding" "delay_unrouted_exchange_to_delay_unrouted_queue_b678ff656e" {
  vhost            = "/"
  source           = rabbitmq_exchange.delay_unrouted_exchange.name
  destination      = rabbitmq_queue.delay_unrouted_queue.name
  destination_type = "queue"
  routing_key      = ""
}

resource "rabbitmq_binding" "legacy_exchange_to_delay_1m_exchange_7889ed4051" {
  vhost            = "/"
  source           = "legacy.exchange"
  destination      = rabbitmq_exchange.delay_1m_exchange.name
  destination_type = "exchange"
  routing_key      = "old"

  depends_on = [
    rabbitmq_binding.delay_1m_exchange_to_delay_1m_queue_1a94b55f09,
  ]
}

resource "rabbitmq_binding" "orders_exchange_to_delay_5m_exchange_20469effd7" {
  vhost            = "/"
  source           = rabbitmq_exchange.orders_exchange.name
  destination      = rabbitmq_exchange.delay_5m_exchange.name
  destination_type = "exchange"
  routing_key      = "order.created"

  depends_on = [
    rabbitmq_binding.delay_5m_exchange_to_delay_5m_queue_e4e374722f,
  ]
}

# Exits before entrances: nothing begins to wait before all the ways out are there.
resource "terraform_data" "ways_out" {
  depends_on = [
    rabbitmq_binding.delay_exchange_to_orders_queue_dff90da522,
    rabbitmq_binding.delay_exchange_to_orders_queue_1b4c387b8d,
  ]
}
