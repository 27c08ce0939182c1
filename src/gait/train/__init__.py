"""Training: sequences from a data set or from fresh rollouts, the two-stage loss, checkpoints that resume exactly."""
