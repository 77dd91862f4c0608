import { listAgentOperations, listLatestDrift } from '@muster/protocol/http';
import type { Showcase } from '../showcase/showcase.ts';

/** Query strings of page views that need their own screenshots, by page address. */
const views: Readonly<Record<string, readonly string[]>> = {};

/**
 * Fills in the parameters of console addresses with IDs and names from a showcase.
 * @param addresses with parameters as `$name`
 * @returns paths by address, without the sign-in page
 * @throws Error for a parameter without a value below
 */
export async function pagesOf(addresses: readonly string[], showcase: Showcase): Promise<Map<string, string>> {
  const { call } = showcase.orchestrator;
  const drifted = await call(listLatestDrift, { query: { status: 'drifted' } });
  const { operations } = await call(listAgentOperations, { params: { node_id: showcase.workshop.nodeId } });
  const parameters: Readonly<Record<string, string | undefined>> = {
    agent: 'web-paris-1',
    assignment: 'web',
    kind: 'sysctl',
    module: 'web',
    operation: operations.find(({ kind, status }) => kind === 'apply' && status === 'succeeded')?.operation_id,
    record: drifted[0]?.drift_id,
    run: showcase.runs.halted,
    session: showcase.recording,
  };
  const filled = (address: string): string =>
    address.replaceAll(/\$(\w+)/g, (_, name: string) => {
      // Only the workshop has a real agent and therefore offers terminals.
      const value = address.startsWith('/terminals/new') ? 'workshop' : parameters[name];
      if (value === undefined)
        throw new Error(`${address}: the parameter "${name}" has no value; add one in ${import.meta.filename}`);
      return value;
    });
  const pages = addresses
    .filter((address) => address !== '/login')
    .map((address) => [address, filled(address)] as const);
  const more = Object.entries(views).flatMap(([address, queries]) =>
    queries.map((query) => [`${address}?${query}`, `${filled(address)}?${query}`] as const),
  );
  return new Map([...pages, ...more]);
}

/** Returns a page's address as a file name. */
export const fileNameOf = (address: string): string =>
  address === '/'
    ? 'overview'
    : address
        .slice(1)
        .replaceAll('/', '-')
        .replaceAll('$', '')
        .replaceAll(/[^\w-]+/g, '_');
