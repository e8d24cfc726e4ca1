//! What answers the exported functions.

pub use crate::arrays::rows::*;
pub use crate::captures::rows::*;
pub use crate::contexts::rows::*;
pub use crate::copies::rows::*;
pub use crate::device::rows::*;
pub use crate::driver::rows::*;
pub use crate::events::rows::*;
pub use crate::execs::rows::*;
pub use crate::fills::rows::*;
pub use crate::host::rows::*;
pub use crate::launches::rows::*;
pub use crate::libraries::rows::*;
pub use crate::links::rows::*;
pub use crate::memory::rows::*;
pub use crate::modules::rows::*;
pub use crate::nodes::rows::*;
pub use crate::pointer_attributes::rows::*;
pub use crate::pools::rows::*;
pub use crate::queries::rows::*;
pub use crate::streams::rows::*;
pub use crate::symbols::rows::*;
pub use crate::topology::rows::*;
pub use crate::user_objects::rows::*;
pub use crate::virtual_memory::rows::*;
