//! The Agent Client Protocol over standard input and output.
