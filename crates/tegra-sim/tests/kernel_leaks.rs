//! Nothing is left of objects that were freed. The program has only one test, because the test counts the descriptors
//! of the whole process.

#[path = "kernel/support/mod.rs"]
mod support;

use support::*;

#[test]
fn rule_1_no_descriptor_and_no_object_is_left_behind() {
    let warm = Board::new();
    drop(warm);
    let before = open_fds();
    let board = Board::new();
    let census = board.sim.kernel().census();
    {
        let rig = board.rig();
        let _memory = board.setup(&rig.channel);
        alloc_obj_ctx(&rig.channel, 0xc7c0).unwrap();
        let buffer = board.buffer(1 << 20);
        map(&rig.space, &buffer).unwrap();
        board.free(buffer.handle);
        assert!(board.sim.kernel().census().files > census.files);
    }
    let after = board.sim.kernel().census();
    assert_eq!((after.files, after.channels, after.tsgs), (census.files, 0, 0));
    drop(board);
    assert_eq!(open_fds(), before);
}
