"""How far scores would differ on other data of the same kind: units that are independent, errors, intervals."""
