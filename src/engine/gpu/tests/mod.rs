//! Tests of the GPU engine on a real device.
