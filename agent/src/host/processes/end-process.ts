/**
 * Terminates this process immediately. A normal exit waits for the threads that access files, and a hanging disk would
 * block it forever. A signal does not wait.
 */
export function endProcess(exitCode: number): never {
  const isWaiting = process.getActiveResourcesInfo().some((kind) => /^FSReq|^GetAddrInfo/.test(kind));
  if (isWaiting) {
    // A service manager treats termination by SIGTERM as success, and termination by SIGKILL as failure.
    process.removeAllListeners('SIGTERM');
    process.kill(process.pid, exitCode === 0 ? 'SIGTERM' : 'SIGKILL');
  }
  process.exit(exitCode);
}
