//! The GPU front end, driven the way programs drive it: ring, pushbuffer, doorbell.

mod harness;
mod ring;
