/**
 * Terminates this process immediately, with a signal. A normal exit would wait for the threads that access files, which
 * a hanging disk blocks forever.
 */
export function endProcess(exitCode: number): never {
  const isWaiting = process.getActiveResourcesInfo().some((kind) => /^FSReq|^GetAddrInfo/.test(kind));
  if (isWaiting) {
    // Service managers treat termination by SIGTERM as success and termination by SIGKILL as failure.
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, exitCode === 0 ? 'SIGTERM' : 'SIGKILL');
  }
  process.exit(exitCode);
}
