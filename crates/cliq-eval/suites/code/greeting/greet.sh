#!/bin/sh
# Greets a person by name: greet.sh NAME
echo "Hello, $1!"
