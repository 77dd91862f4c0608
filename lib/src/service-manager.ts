import { spawn } from 'node:child_process';
import type { Clock } from './clock.ts';
import type { Program } from './instance-lock.ts';

/**
 * Notifies systemd of the state of a service that it started. systemd listens on a Unix datagram socket, which Node does
 * not support, so `systemd-notify` sends the messages; each costs some milliseconds of processor time.
 */
export interface ServiceManager {
  /**
   * Reports that the service is up. After that, if systemd's watchdog is set, the event loop sends it signs of life.
   * @param status text that `systemctl status` shows
   */
  ready(status?: string): void;
  stopping(): void;
}

/** Sends words to systemd; calls `ended` with null, or with the reason if that failed. */
export type Notify = (words: readonly string[], ended: (failure: string | null) => void) => void;

/** Signs of life within the timeout of the watchdog. */
const signsPerTimeout = 3;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * @param env the variables of systemd are removed from it: they are not for child processes
 * @param program named in warnings
 * @param warn called once at most
 * @returns null if no service manager listens
 */
export function serviceManager(
  env: NodeJS.ProcessEnv,
  program: Program,
  clock: Clock,
  warn: (message: string) => void,
  notify?: Notify,
): ServiceManager | null {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: limit, WATCHDOG_PID: pid } = env;
  delete env.NOTIFY_SOCKET;
  delete env.WATCHDOG_USEC;
  delete env.WATCHDOG_PID;
  if (!socket) return null;
  const send = notify ?? notifyOver(socket, program);
  const everyMs = pid === undefined || pid === String(process.pid) ? Number(limit ?? 0) / 1000 / signsPerTimeout : 0;
  let hasStopped = false;
  let warned = false;
  const failed = (failure: string | null) => {
    if (failure === null || warned) return;
    warned = true;
    warn(failure);
  };
  // Each sign of life schedules the next one when it was sent, so that they never pile up.
  const scheduleSign = (): void => {
    clock.after(everyMs, () => {
      if (hasStopped) return;
      send(['WATCHDOG=1'], (failure) => {
        failed(failure);
        scheduleSign();
      });
    });
  };
  return {
    ready(status) {
      send(['--ready', ...(status === undefined ? [] : [`--status=${status}`])], failed);
      if (everyMs > 0) scheduleSign();
    },
    stopping() {
      hasStopped = true;
      send(['STOPPING=1'], failed);
    },
  };
}

const notifyOver =
  (socket: string, service: Program): Notify =>
  (words, ended) => {
    const child = spawn('systemd-notify', words, { env: { PATH: searchPath, NOTIFY_SOCKET: socket }, stdio: 'ignore' });
    // The service does not wait for it when it ends.
    child.unref();
    child.once('error', (error: NodeJS.ErrnoException) =>
      ended(
        error.code === 'ENOENT'
          ? `systemd-notify is not installed: systemd does not learn that the ${service} is up`
          : `systemd-notify cannot be started: ${error.message}`,
      ),
    );
    child.once('exit', (code, signal) =>
      ended(code === 0 ? null : `systemd-notify ended with ${code ?? signal}: systemd may restart the ${service}`),
    );
  };
