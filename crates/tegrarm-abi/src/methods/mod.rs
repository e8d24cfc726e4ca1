//! GPU class methods and the launch descriptor (QMD).

pub mod copy;
pub mod host;
pub mod qmd;

/// Compute engine methods, class C6C0 (ga10b has C7C0, the same methods). Method numbers are byte offsets.
pub mod compute {
    pub mod fields;
    pub mod methods;

    pub use fields::*;
    pub use methods::*;
}
