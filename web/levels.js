// A level as the one that it is to people, also where it is spread over several queues.

export const queuesOf = (level) => level.shards?.map((shard) => shard.queue) ?? [level.queue];

// All that waits; not known where one of its queues is not.
export function waitingIn(level, counts) {
  return queuesOf(level).reduce((sum, queue) => {
    const waiting = counts.get(queue) ?? null;
    return sum === null || waiting === null ? null : sum + waiting;
  }, 0);
}

// What waited in all of its queues, at every moment that something is known of one: the others count as they were before.
export function historyOf(level, histories) {
  const queues = queuesOf(level);
  if (queues.length === 1) return histories.get(queues[0]) ?? [];
  const last = new Map(), sums = [];
  const points = queues.flatMap((queue) => (histories.get(queue) ?? []).map(([at, waiting]) => [at, queue, waiting]));
  for (const [at, queue, waiting] of points.sort((one, other) => one[0] - other[0])) {
    last.set(queue, waiting);
    if (last.size < queues.length) continue;
    if (sums.at(-1)?.[0] === at) sums.pop();
    sums.push([at, [...last.values()].reduce((sum, each) => sum + each, 0)]);
  }
  return sums;
}
