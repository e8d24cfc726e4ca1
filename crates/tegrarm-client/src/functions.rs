//! The functions of the library, found by their names.

/// Declares `Table`: one field for each function of the header, which holds its address.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of libtegrarm. Call one as `(functions.tegrarm_version)()`; its contract is the header's.
        #[derive(Clone, Copy)]
        pub struct Table {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)*
        }

        impl Table {
            /// Fills the table from the addresses that `find` gives for the names of the functions.
            ///
            /// # Errors
            /// What `find` says of a function that it does not find.
            ///
            /// # Safety
            /// Each address is that of the function with this name in a libtegrarm whose header is this one.
            pub unsafe fn fill(find: impl Fn(&std::ffi::CStr) -> Result<*mut c_void, String>) -> Result<Table, String> {
                Ok(Table {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let address = find(std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default())?;
                        // SAFETY: the caller promises that this is the address of a function of this type.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument: $type),*) $(-> $result)?>(address) }
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;
