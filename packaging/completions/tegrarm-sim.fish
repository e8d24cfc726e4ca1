# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_tegrarm_sim_global_optspecs
    string join \n h/help V/version
end

function __fish_tegrarm_sim_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_tegrarm_sim_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_tegrarm_sim_using_subcommand
    set -l cmd (__fish_tegrarm_sim_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c tegrarm-sim -n "__fish_tegrarm_sim_needs_command" -s h -l help -d 'Print help'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_needs_command" -s V -l version -d 'Print version'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_needs_command" -f -a "run" -d 'Runs a program, and everything it starts, with the board\'s device nodes'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_needs_command" -f -a "replay" -d 'Makes the calls of a recording on a virtual board and reports the first one that ends differently, or all of them'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_needs_command" -f -a "decode" -d 'Prints a pushbuffer, a launch descriptor or a cubin in words'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_needs_command" -f -a "manual" -d 'Writes the man pages and the completions of bash, zsh and fish into a directory'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l chip -d 'The module: agx-orin, agx-orin-pg, agx-orin-32gb, orin-nx, orin-nx-super, orin-nx-8gb, orin-nx-8gb-super, orin-nano, orin-nano-super, orin-nano-4gb, orin-nano-4gb-super, gv11b' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l power -d 'The power mode, with the name that nvpmodel prints. Without one, nothing limits the GPU' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l l4t -d 'Jetson Linux release: r36, r35, r35.4, r39' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l nvmap -d 'What nvmap refuses although memory is free: plain (nothing), cve-2025-33177 (what L4T 36.4.7 refuses), fragmented' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l strace -d 'Prints a decoded line per ioctl, to standard error or to a file' -r -F
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l kmsg -d 'Writes the kernel\'s log, as dmesg prints it: faults of the GPU, and interrupts that the driver only logs' -r -F
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l kmsg-records -d 'The same as records of /dev/kmsg, for tools that read those' -r -F
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l trace -d 'Writes a timeline of ioctls and of the GPU\'s work, for Perfetto or chrome://tracing' -r -F
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l without -d 'Leaves out a node, file or directory of the board, for example /dev/nvmap. May be given several times' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l deny -d 'Lets the program not open a node (EACCES). May be given several times' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l memory -d 'The board has this much memory, in MiB' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l check -d 'Looks for errors in kernels: memory, init, race or race=strict, sync, order, cpu, divided by commas. Reports go to standard error' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l schedules -d 'Runs each launch in so many other orders of blocks and warps, too, and reports results that differ, as --check order does with 4' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l seed -d 'The other orders follow from this number. It is 1 unless it is given' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l clock -d 'The time that the program sees on the GPU: host, or model, which is about what it would see on the module' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l profile -d 'Writes what every kernel did and when, as JSON. `tegrarm profile` makes a page of it' -r -F
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l check-exit -d 'Ends with this status if the program succeeded and --check found something' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l suppressions -d 'Reports of --check that are known: they are not printed, and do not count' -r -F
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l scarce -d 'There is at most this much of everything that programs divide among themselves. For tests' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l kill -d 'Kills the program, the supervisor or the outer process at an ioctl: `program@7`. For tests' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l strict -d 'Refuse what is accepted here and believed to freeze a board'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -s q -l quiet -d 'Does not print the kernel\'s log to standard error'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l trap-paths -d 'Leaves the program the host\'s own /dev and traps every call that takes a path instead: slower, but new devices show'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l dead-gpu -d 'The GPU cannot be powered: every ioctl on its nodes is ENODEV'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l stats -d 'Prints at the end what each kernel cost: launches, instructions, seconds, and the module\'s seconds with --clock model'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -s v -l verbose -d 'Says how the program got its device nodes, and how many calls were trapped for it'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -l interruptible -d 'Lets signals interrupt calls that are being answered, as hosts before Linux 5.19 do. For tests'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand run" -s h -l help -d 'Print help'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -l chip -d 'The module: agx-orin, agx-orin-pg, agx-orin-32gb, orin-nx, orin-nx-super, orin-nx-8gb, orin-nx-8gb-super, orin-nano, orin-nano-super, orin-nano-4gb, orin-nano-4gb-super, gv11b' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -l power -d 'The power mode, with the name that nvpmodel prints. Without one, nothing limits the GPU' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -l l4t -d 'Jetson Linux release: r36, r35, r35.4, r39' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -l nvmap -d 'What nvmap refuses although memory is free: plain (nothing), cve-2025-33177 (what L4T 36.4.7 refuses), fragmented' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -l strict -d 'Refuse what is accepted here and believed to freeze a board'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -l all -d 'Goes on after a call that ends differently, and prints every difference, field by field'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -l json -d 'Prints the outcome as JSON'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand replay" -s h -l help -d 'Print help'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand decode" -l as -d 'What the file is, if that is not to be guessed: pushbuffer, qmd, cubin, code (bare instructions)' -r
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand decode" -l json -d 'Prints the kind and the lines as JSON'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand decode" -s h -l help -d 'Print help'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand manual" -s h -l help -d 'Print help'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand help; and not __fish_seen_subcommand_from run replay decode manual help" -f -a "run" -d 'Runs a program, and everything it starts, with the board\'s device nodes'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand help; and not __fish_seen_subcommand_from run replay decode manual help" -f -a "replay" -d 'Makes the calls of a recording on a virtual board and reports the first one that ends differently, or all of them'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand help; and not __fish_seen_subcommand_from run replay decode manual help" -f -a "decode" -d 'Prints a pushbuffer, a launch descriptor or a cubin in words'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand help; and not __fish_seen_subcommand_from run replay decode manual help" -f -a "manual" -d 'Writes the man pages and the completions of bash, zsh and fish into a directory'
complete -c tegrarm-sim -n "__fish_tegrarm_sim_using_subcommand help; and not __fish_seen_subcommand_from run replay decode manual help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
