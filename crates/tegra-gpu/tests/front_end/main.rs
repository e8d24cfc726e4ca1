//! Tests of the GPU front end. They use it as programs do, through the ring, the pushbuffer and the doorbell.

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
