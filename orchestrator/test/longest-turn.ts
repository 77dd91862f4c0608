const everyMs = 5;

/**
 * Measures how long the event loop of this thread is blocked, in CPU time, so that other load on the machine does not
 * affect the result.
 */
export function watchTurns(): { stop(): number } {
  let longest = 0;
  let last = processorMs();
  const look = () => {
    const now = processorMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, everyMs);
  return {
    /**
     * Stops measuring.
     * @returns the longest time between two ticks of a timer that is always due, in milliseconds
     */
    stop() {
      clearInterval(timer);
      look();
      return longest;
    },
  };
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
