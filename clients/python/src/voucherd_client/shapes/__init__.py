"""What the service answers, as structs: money is `Decimal`, moments are aware, unknown fields are ignored."""
