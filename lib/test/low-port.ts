import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Range below the ports that Linux and macOS choose for outgoing connections, which could occupy a killed server's
 * port.
 */
const [from, until] = [20_000, 32_000];

/** Returns a port of 127.0.0.1 that is free, and that a killed server will most likely find free when it starts again. */
export async function lowPort(): Promise<number> {
  for (;;) {
    const port = randomInt(from, until);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
