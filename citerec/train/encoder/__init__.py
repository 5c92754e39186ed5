"""Training of the encoder: papers that cite each other become neighbours."""
