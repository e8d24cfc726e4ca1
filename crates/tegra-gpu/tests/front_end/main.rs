//! The GPU front end, driven the way programs drive it: ring, pushbuffer, doorbell.

mod compute;
mod copy;
mod faults;
mod harness;
mod host;
mod hostile;
mod launch;
mod machine_code;
mod ring;
mod steps;
mod threads;
