_tegrarm() {
    local words current=${COMP_WORDS[COMP_CWORD]}
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'run trace info doctor top compile validate cdi sim pool --help --version' -- "$current")
        return
    fi
    case ${COMP_WORDS[1]} in
        run) words='-h --help --json --preload' ;;
        trace) words='-h --help --json --preload -o --output --html --perfetto' ;;
        info) words='-h --help --json' ;;
        doctor) words='-h --help --json --kernel --root' ;;
        top) words='-h --help --json -d --delay -n --times --prometheus' ;;
        compile) words='-h --help --json -I --include -D --define --arch -O --ptx' ;;
        validate) words='-h --help --json --risky --yes --output --only --no-simulator --list --check' ;;
        cdi) words='-h --help --json --root --output' ;;
        sim) words='-h --help --json' ;;
        pool) words='' ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
}
complete -o filenames -F _tegrarm tegrarm
