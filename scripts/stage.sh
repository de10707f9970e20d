# Stages of a long script, to be sourced: each runs with its output in a log,
# shows that it is alive, and prints one line with its time. The first that
# fails ends the script with the tail of its log.
#
#   stages NAME FOLDER               names the script and where its logs go
#   stage NAME 'HOW LONG' COMMAND... runs one
#   stages_done                      prints the last line

stages() {
  stages_name=$1
  stages_logs=$2
  stages_count=0
  stages_start=$SECONDS
  stages_beat=
  mkdir -p "$stages_logs"
  trap 'stage_quiet' EXIT
}

# Shows the last line of a log: over and over on a terminal, twice a minute
# elsewhere.
stage_beat() {
  local name=$1 log=$2 began=$SECONDS next=30 line
  while sleep 1 >/dev/null 2>&1; do
    line=$(tail -n 1 "$log" 2>/dev/null | tr '\r\t' '\n ' | tail -n 1 | cut -c 1-90)
    if [ -t 1 ]; then
      printf '\r\033[K%s: %d s  %s' "$name" $((SECONDS - began)) "$line"
    elif [ $((SECONDS - began)) -ge $next ]; then
      next=$((next + 30))
      printf '  %s: %d s so far  %s\n' "$name" $((SECONDS - began)) "$line"
    fi
  done
}

stage_quiet() {
  if [ -n "$stages_beat" ]; then
    kill "$stages_beat" 2>/dev/null || true
    wait "$stages_beat" 2>/dev/null || true
    stages_beat=
    if [ -t 1 ]; then printf '\r\033[K'; fi
  fi
}

stage() {
  local name=$1 usual=$2 began=$SECONDS status=0
  local log=$stages_logs/$name.log
  shift 2
  if [ -n "$usual" ]; then echo "$name ($usual) ..."; fi
  : >"$log"
  stage_beat "$name" "$log" &
  stages_beat=$!
  # Not in a condition: there bash would ignore `set -e` in a stage's function.
  set +e
  (set -e; "$@") >"$log" 2>&1 </dev/null
  status=$?
  set -e
  stage_quiet
  if [ $status -ne 0 ]; then
    tail -n 40 "$log" | cut -c 1-400
    echo "$stages_name: $name failed with status $status after $((SECONDS - began)) s; all it said is in $log" >&2
    exit 1
  fi
  stages_count=$((stages_count + 1))
  printf '%-14s %4d s\n' "$name" $((SECONDS - began))
}

stages_done() {
  echo "$stages_name: all passed ($stages_count stages, $((SECONDS - stages_start)) s)"
}
