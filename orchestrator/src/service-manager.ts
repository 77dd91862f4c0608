import { spawn } from 'node:child_process';
import type { Clock } from '../../lib/src/clock.ts';

/**
 * What systemd wants to hear of a service that it started: that it is up, that it lives, that it stops. It listens on a
 * Unix datagram socket, which Node does not have: `systemd-notify` says it, some milliseconds of a processor each time.
 */
export interface ServiceManager {
  /**
   * It is up. From now on it is said, as often as systemd asks for, that the event loop turns.
   * @param status what `systemctl status` shows
   */
  ready(status: string): void;
  stopping(): void;
}

/** What runs a word to systemd; `ended` when it has been said, or could not be. */
export type Say = (words: readonly string[], ended: (failure: string | null) => void) => void;

/** So often within the time after which systemd takes the service for dead. */
const proofs = 3;

/**
 * @param env whose variables for it are taken away: they are not for what this process starts
 * @returns null when nobody listens
 */
export function serviceManager(
  env: NodeJS.ProcessEnv,
  clock: Clock,
  warn: (message: string) => void,
  say?: Say,
): ServiceManager | null {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: limit, WATCHDOG_PID: pid } = env;
  delete env.NOTIFY_SOCKET;
  delete env.WATCHDOG_USEC;
  delete env.WATCHDOG_PID;
  if (!socket) return null;
  const tell = say ?? sayTo(socket);
  const everyMs = pid === undefined || pid === String(process.pid) ? Number(limit ?? 0) / 1000 / proofs : 0;
  let hasStopped = false;
  let warned = false;
  const failed = (failure: string | null) => {
    if (failure === null || warned) return;
    warned = true;
    warn(failure);
  };
  // The next one counts from the end of this: they never pile up.
  const prove = (): void => {
    clock.after(everyMs, () => {
      if (hasStopped) return;
      tell(['WATCHDOG=1'], (failure) => {
        failed(failure);
        prove();
      });
    });
  };
  return {
    ready(status) {
      tell(['--ready', `--status=${status}`], failed);
      if (everyMs > 0) prove();
    },
    stopping() {
      hasStopped = true;
      tell(['STOPPING=1'], failed);
    },
  };
}

const sayTo =
  (socket: string): Say =>
  (words, ended) => {
    const child = spawn('systemd-notify', words, {
      env: { PATH: '/usr/bin:/bin', NOTIFY_SOCKET: socket },
      stdio: 'ignore',
    });
    // It is not waited for when this process ends.
    child.unref();
    child.once('error', (error) => ended(`systemd-notify cannot be started: ${error.message}`));
    child.once('exit', (code, signal) =>
      ended(code === 0 ? null : `systemd-notify ended with ${code ?? signal}: systemd may restart the orchestrator`),
    );
  };
