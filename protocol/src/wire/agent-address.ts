/** Where agents reach an orchestrator. */
export interface AgentAddress {
  readonly host: string;
  readonly port: number;
}

/** Maximum number of addresses that an orchestrator names to its agents. */
export const maxAgentAddresses = 16;

/**
 * Parses HOST:PORT. An IPv6 address is in brackets.
 * @returns null if the text has another form, or the port is not between 1 and 65535
 */
export function parseAgentAddress(text: string): AgentAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^:[\]\s/]{1,253})):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port < 1 || port > 65_535 ? null : { host, port };
}

/** Returns each address once, in order. Omits those that are null. */
export function distinctAddresses(addresses: readonly (AgentAddress | null)[]): AgentAddress[] {
  const distinct = new Map<string, AgentAddress>();
  for (const address of addresses) {
    if (address === null) continue;
    const { host, port } = address;
    if (!distinct.has(addressText(address))) distinct.set(addressText(address), { host, port });
  }
  return [...distinct.values()];
}

/** Returns an address as HOST:PORT, with an IPv6 address in brackets. */
export const addressText = ({ host, port }: AgentAddress): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;
