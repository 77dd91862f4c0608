/**
 * Builds the command lines that an operator pastes into a shell on a machine. They contain only the configuration,
 * keys, and the token, never data from a request.
 */

export interface InstallSource {
  /** Base API URL, without a trailing slash. */
  from: string;
  /** Pin for the certificate's public key in curl's format; null to verify the certificate normally. */
  pin: string | null;
}

export interface EnrolmentLines {
  /** The command line to paste. Installs the agent if this orchestrator offers packages. */
  command: string;
  /** The command line for a machine on which the agent is already installed. */
  connect_command: string;
  /** Notes on why `command` does not install the agent, and on its addresses. Null if there are none. */
  note: string | null;
}

export interface EnrolmentEndpoints {
  /** `host:port` that agents dial. */
  agents: string;
  /** The orchestrator key, hex. */
  publicKey: string;
  install?: InstallSource | { refused: string };
  note?: string | null;
}

/**
 * Builds the command lines.
 * @param approved whether the token enrolls agents as approved; otherwise, an operator must approve them
 */
export function enrolmentLines(endpoints: EnrolmentEndpoints, token: string, approved: boolean): EnrolmentLines {
  const { agents, publicKey, install = { refused: null }, note = null } = endpoints;
  // Passes the token in the environment, because other users of the machine can see arguments.
  const connect = `MUSTER_TOKEN=${word(token)} muster agent connect ${word(agents)} --orchestrator-key ${word(publicKey)}`;
  if ('refused' in install) return { command: connect, connect_command: connect, note: joined(install.refused, note) };
  const { from, pin } = install;
  // The certificate is self-signed, so curl verifies only the pinned key.
  const fetched = `curl -fsS${pin === null ? '' : `k --pinnedpubkey ${word(pin)}`} ${word(`${from}/install/agent.sh`)}`;
  const options = [
    ['--from', from],
    ...(pin === null ? [] : [['--pin', pin]]),
    ['--to', agents],
    ['--key', publicKey],
    ...(approved ? [] : [['--wait', 'no']]),
  ];
  const installOptions = options.map(([name = '', value = '']) => `${name} ${word(value)}`).join(' ');
  // A pipeline returns the exit code of its last command, and a shell that reads no input succeeds. If the download
  // fails, the shell therefore runs the script `exit 1`.
  const command = `(${fetched} || echo exit 1) | MUSTER_TOKEN=${word(token)} sh -s -- ${installOptions}`;
  return { command, connect_command: connect, note };
}

const joined = (...notes: (string | null)[]): string | null => notes.filter((note) => note !== null).join(' ') || null;

const loopback = /^(127(\.\d+){3}|::1|localhost)$/i;

/**
 * Returns a note if other machines may not reach the address that agents dial.
 * @param agentHost address on which the orchestrator listens for agents; null means all addresses
 * @param own hostname of the orchestrator's machine
 */
export function noteOnAgents(agentHost: string | null, advertisedHost: string | null, own: string): string | null {
  if (agentHost !== null && loopback.test(agentHost))
    return `Agents can connect only from the orchestrator’s own machine, because agent_host is ${agentHost}. Set agent_host in the configuration to an address that other machines can reach.`;
  if (advertisedHost !== null) return null;
  return `The machine must be able to resolve ${own}, the hostname of the orchestrator. To use another name or address, set advertised_host in the configuration.`;
}

/** Quotes text as one POSIX shell word. */
export const word = (text: string): string =>
  /^[A-Za-z0-9_./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Settings that determine whether machines can install from this orchestrator. */
export interface InstallFacts {
  hasPackages: boolean;
  apiHost: string;
  /** Whether the API serves TLS itself. */
  tls: boolean;
  /** URL of a reverse proxy in front of the API. */
  publicUrl: string | null;
  /** The API's own URL, as seen from other machines. */
  ownUrl: string;
  /** SHA-256 of the API certificate's public key, base64; null without TLS. */
  keyDigest: string | null;
}

export function installSource(facts: InstallFacts): InstallSource | { refused: string } {
  const { hasPackages, apiHost, tls, publicUrl, ownUrl, keyDigest } = facts;
  if (!hasPackages)
    return {
      refused:
        'This orchestrator has no agent packages to offer. Install the orchestrator from a package, or run `npm run build` in the directory of its source code.',
    };
  // The key of the proxy's certificate is unknown, so machines verify the certificate as usual.
  if (publicUrl !== null) return { from: publicUrl.replace(/\/+$/, ''), pin: null };
  if (loopback.test(apiHost))
    return {
      refused: `The API listens only on ${apiHost}, which other machines cannot reach. Set api_host in the configuration to an address that they can reach.`,
    };
  if (!tls || keyDigest === null)
    return {
      refused:
        'The API uses plain HTTP, which is not safe for installing programs. Set public_url to the https URL of the proxy in front of the API.',
    };
  return { from: ownUrl, pin: `sha256//${keyDigest}` };
}
