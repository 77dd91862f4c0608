import { createServer } from 'node:net';

/**
 * Checks whether a program can listen on a port. Without IPv6, treats `::` as all IPv4 addresses.
 * @returns null if it can, otherwise the error code, such as `EADDRINUSE` or `EACCES`
 */
export async function whyNotListen(host: string, port: number): Promise<string | null> {
  const reason = await tryToListen(host, port);
  const noIpv6 = host === '::' && (reason === 'EAFNOSUPPORT' || reason === 'EADDRNOTAVAIL');
  return noIpv6 ? tryToListen('0.0.0.0', port) : reason;
}

function tryToListen(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

interface Ports {
  apiPort: number;
  agentPort: number;
}

/** Returns another port number to suggest. Returns 0 unchanged, because it means any free port. */
const another = (port: number): number => (port === 0 ? 0 : port > 65_000 ? port - 10 : port + 10);

/**
 * Returns the message for a port that cannot be used. Names both ports, because another Muster on the machine would use
 * both.
 */
export function portMessage(reason: string, port: number, { apiPort, agentPort }: Ports): string {
  const remedy = `choose others: npm start -- --api-port ${another(apiPort)} --agent-port ${another(agentPort)}`;
  if (reason === 'EADDRINUSE')
    return `Port ${port} is in use. If Muster is already running, stop it with Ctrl-C. Otherwise ${remedy}`;
  if (reason === 'EACCES') return `This user may not listen on port ${port}. Start as root, or ${remedy}`;
  return `Port ${port} cannot be used (${reason}); ${remedy}`;
}
