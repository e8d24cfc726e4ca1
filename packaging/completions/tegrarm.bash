_tegrarm_sim() {
    local here=${BASH_SOURCE[0]%/*} previous=tegrarm-sim words=("${COMP_WORDS[@]:2}")
    declare -F _tegrarm__sim > /dev/null || . "$here/tegrarm-sim" 2> /dev/null || . "$here/tegrarm-sim.bash" 2> /dev/null || return
    [ "$COMP_CWORD" -lt 3 ] || previous=${COMP_WORDS[COMP_CWORD - 1]}
    local COMP_WORDS=(tegrarm-sim "${words[@]}") COMP_CWORD=$((COMP_CWORD - 1))
    _tegrarm__sim tegrarm-sim "${COMP_WORDS[COMP_CWORD]}" "$previous"
}
_tegrarm() {
    local words current=${COMP_WORDS[COMP_CWORD]}
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'run trace profile diff info doctor top compile validate cdi cflags sim nvcc pool --help --version' -- "$current")
        return
    fi
    case ${COMP_WORDS[1]} in
        run) words='-h --help --json --preload --nvml --cuda --check --schedules --seed --check-exit --suppressions --clock --stats --profile' ;;
        trace) words='-h --help --json --preload -o --output --html --perfetto' ;;
        profile) words='-h --help --json -o --output --data --perfetto --sarif --check --clock --from --schema --preload --cuda --nodes' ;;
        diff) words='-h --help --json --most' ;;
        info) words='-h --help --json' ;;
        doctor) words='-h --help --json --kernel --root --cdi' ;;
        top) words='-h --help --json -d --delay -n --times --prometheus' ;;
        compile) words='-h --help --json -I --include -D --define --arch -O -lineinfo --generate-line-info -std --std -Xptxas --ptxas-options --ptx' ;;
        validate) words='-h --help --json --risky --yes --output --only --no-simulator --list --compare --check' ;;
        cdi) words='-h --help --json --root --output' ;;
        cflags) words='-h --help --json --prefix' ;;
        sim) _tegrarm_sim; return ;;
        nvcc) words='' ;;
        pool)
            if [ "$COMP_CWORD" = 2 ]; then
                mapfile -t COMPREPLY < <(compgen -W 'plan run profile list table -h --help' -- "$current")
                return
            fi
            case ${COMP_WORDS[2]} in
                plan) words='-h --help --batch --micro-batches --objective --compare -o --output' ;;
                run) words='-h --help --devices --address --tokens --requests --slow --kill --metrics-port -o --output' ;;
                profile) words='-h --help --measure --ray' ;;
                list) words='-h --help' ;;
                table) words='-h --help compare scale' ;;
            esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
}
complete -o filenames -F _tegrarm tegrarm
