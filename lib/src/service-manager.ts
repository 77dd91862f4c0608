import { spawn } from 'node:child_process';
import type { Clock } from './clock.ts';
import type { Program } from './instance-lock.ts';

/**
 * Notifies systemd of the state of a service that systemd started. systemd listens on a Unix datagram socket, which
 * Node.js does not support, so `systemd-notify` sends the messages. Each message costs a few milliseconds of CPU time.
 */
export interface ServiceManager {
  /**
   * Reports that the service is up. If systemd's watchdog is enabled, the event loop then sends watchdog notifications.
   * @param status text that `systemctl status` shows
   */
  ready(status?: string): void;
  stopping(): void;
}

/** Sends words such as `WATCHDOG=1` to systemd. Calls `ended` with null, or with the reason for a failure. */
export type Notify = (words: readonly string[], ended: (failure: string | null) => void) => void;

/** Number of watchdog notifications to send within the watchdog timeout. */
const signsPerTimeout = 3;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Connects to the service manager that started this process.
 * @param env environment from which systemd's variables are removed, because child processes must not use them
 * @param program program name, for warnings
 * @param warn called at most once
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
  // Schedules each notification only after the previous one was sent, so that notifications never pile up.
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
    // Does not delay the exit of the service.
    child.unref();
    child.once('error', (error: NodeJS.ErrnoException) =>
      ended(
        error.code === 'ENOENT'
          ? `systemd-notify is not installed, so systemd is not notified that the ${service} is up`
          : `failed to start systemd-notify: ${error.message}`,
      ),
    );
    child.once('exit', (code, signal) =>
      ended(
        code === 0
          ? null
          : `systemd-notify ${code === null ? `was killed by ${signal}` : `exited with status ${code}`}; systemd may restart the ${service}`,
      ),
    );
  };
