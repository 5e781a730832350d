#!/bin/bash
# Seconds of par-compile for GPT-2 124M on 8 ranks (pp 2, dp 2, tp 2) and on 64 with the same roles (dp 16).
# usage: compile_time.sh MODEL [BIN [TURNS]]
# MODEL has batch 512 x 1024; BIN is the folder of par-compile; both plans are compiled TURNS times, in turns.
set -euo pipefail
model=$1 bin=${2:-build/bin} turns=${3:-3}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
TIMEFORMAT='%R %U %S'

plan() { # dp microbatches: the global batch stays, and so do the roles
  cat <<PLAN
use: [megatron]
mesh: {pp: 2, dp: $1, tp: 2}
batch: {size: 512, microbatches: $2}
train:
  optimizer: {kind: adamw, lr: 1e-4}
  clip: 1.0
pipeline: {schedule: 1f1b, cuts: {h.*: even}}
recompute: full
PLAN
}

median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

plan 2 8 > "$work/8.yaml"
plan 16 8 > "$work/64.yaml"
for ((turn = 0; turn < turns; turn++)); do
  for ranks in 8 64; do
    { time "$bin/par-compile" "$model" "$work/$ranks.yaml" -o "$work/$ranks.par" \
      > "$work/$ranks.log" 2>&1; } 2>> "$work/$ranks.times" || { cat "$work/$ranks.log"; exit 1; }
  done
done

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
echo "machine: $cpu, $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
for ranks in 8 64; do
  wall=$(awk '{ print $1 }' "$work/$ranks.times" | median)
  cpu=$(awk '{ print $2 + $3 }' "$work/$ranks.times" | median)
  programs=$(ls "$work/$ranks.par"/role-*.json | wc -l)
  echo "$ranks ranks: wall $wall s, cpu $cpu s (medians of $turns); $programs programs"
  eval "wall$ranks=$wall cpu$ranks=$cpu"
done
awk -v a="$wall8" -v b="$wall64" -v c="$cpu8" -v d="$cpu64" \
  'BEGIN { printf "64 ranks over 8 ranks: wall %.2f, cpu %.2f\n", b / a, d / c }'
