/**
 * Ends this process now. An exit waits for the threads that work with files, and one that waits for a disk that hangs
 * waits for ever: only a signal gets past it.
 */
export function endProcess(exitCode: number): never {
  const isWaiting = process.getActiveResourcesInfo().some((kind) => /^FSReq|^GetAddrInfo/.test(kind));
  if (isWaiting) {
    // Whoever supervises the agent takes an end by SIGTERM for one in order, and one by SIGKILL for a failure.
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, exitCode === 0 ? 'SIGTERM' : 'SIGKILL');
  }
  process.exit(exitCode);
}
