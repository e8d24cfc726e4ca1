//! How a kernel that stands around another one hands calls down.

/// Writes the named methods of [`Kmd`](crate::Kmd) so that the kernel in the field `$inner` answers them. A kernel around another one names
/// every method that it does not answer itself: what it forgets gets the answer of a kernel without the ability, which would be wrong.
#[macro_export]
macro_rules! forward {
    ($inner:tt: $($method:ident),+ $(,)?) => { $( $crate::forward!(@ $method $inner); )+ };
    (@ name $inner:tt) => {
        fn name(&self) -> &str { self.$inner.name() }
    };
    (@ is_simulated $inner:tt) => {
        fn is_simulated(&self) -> bool { self.$inner.is_simulated() }
    };
    (@ examines_code $inner:tt) => {
        fn examines_code(&self) -> bool { self.$inner.examines_code() }
    };
    (@ names_code $inner:tt) => {
        fn names_code(&self) -> bool { self.$inner.names_code() }
    };
    (@ step $inner:tt) => {
        fn step(&self) -> bool { self.$inner.step() }
    };
    (@ progress $inner:tt) => {
        fn progress(&self) -> Option<u64> { self.$inner.progress() }
    };
    (@ rest $inner:tt) => {
        fn rest(&self, seen: u64, longest: ::std::time::Duration) { self.$inner.rest(seen, longest) }
    };
    (@ saw_gpu $inner:tt) => {
        fn saw_gpu(&self) { self.$inner.saw_gpu() }
    };
    (@ waits_in_vain $inner:tt) => {
        fn waits_in_vain(&self) -> Option<String> { self.$inner.waits_in_vain() }
    };
    (@ open $inner:tt) => {
        fn open(&self, path: &str) -> Result<::std::os::fd::OwnedFd, $crate::Errno> { self.$inner.open(path) }
    };
    (@ ioctl $inner:tt) => {
        fn ioctl(
            &self, fd: ::std::os::fd::BorrowedFd<'_>, node: $crate::Node, request: u32, arg: $crate::Arg<'_>,
        ) -> Result<i32, $crate::Errno> {
            self.$inner.ioctl(fd, node, request, arg)
        }
    };
    (@ mmap $inner:tt) => {
        fn mmap(
            &self, fd: ::std::os::fd::BorrowedFd<'_>, at: $crate::Placement, len: usize, prot: $crate::Prot, offset: u64,
        ) -> Result<$crate::Mapping, $crate::Errno> {
            self.$inner.mmap(fd, at, len, prot, offset)
        }
    };
    (@ own_view $inner:tt) => {
        fn own_view(&self, fd: ::std::os::fd::BorrowedFd<'_>) -> Option<usize> { self.$inner.own_view(fd) }
    };
    (@ close $inner:tt) => {
        fn close(&self, fd: ::std::os::fd::OwnedFd) { self.$inner.close(fd) }
    };
    (@ read_text $inner:tt) => {
        fn read_text(&self, path: &str) -> Result<String, $crate::Errno> { self.$inner.read_text(path) }
    };
    (@ write_text $inner:tt) => {
        fn write_text(&self, path: &str, text: &str) -> Result<(), $crate::Errno> { self.$inner.write_text(path, text) }
    };
}
