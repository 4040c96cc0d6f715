//! For tests alone: Octavia as a model.
