"""Training of the encoder on citations: papers that cite each other get similar vectors."""
