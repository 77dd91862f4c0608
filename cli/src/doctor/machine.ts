import { type Disk, type Finding, findingsOf, judgeDisk, judgePermissions, type PathFacts } from './finding.ts';

/** Facts about one of Muster's programs on this machine. */
export interface MachineFacts {
  program: 'agent' | 'orchestrator';
  directory: string;
  /** UID of this process. Only root and the owner can read a data directory. */
  uid: number;
  readable: boolean;
  /** Whether this user lacks search permission on a parent of the data directory. */
  closed: boolean;
  /** UID of the data directory's owner; null if the directory does not exist or was not found. */
  owner: number | null;
  pathFacts: readonly PathFacts[];
  /** The orchestrator's configuration file; null if it is not at one of the usual paths. */
  config: { path: string; mode: number } | null;
  /** State of the systemd unit; null without a unit or without systemd. */
  unit: { name: string; state: string; enabled: string } | null;
  disk: Disk | null;
  /** The orchestrator that the agent is enrolled with; null if it is not enrolled. */
  belongs: {
    /** The configured address, and those that the orchestrator named. */
    addresses: readonly { address: string; error: string | null }[];
    key: string | null;
  } | null;
  /** Whether the agent's orchestrator.json is invalid. */
  damaged: boolean;
  /** Public key of the orchestrator that responded; null if none responded. */
  orchestratorKey: string | null;
  /** Ports that an orchestrator usually uses, and whether a program is listening on them. */
  ports: readonly { port: number; what: string; listening: boolean }[];
}

const { ok, warning, problem } = findingsOf('machine');

/**
 * Diagnoses one of Muster's programs on this machine. Without a data directory, diagnoses only the systemd unit and the
 * configuration.
 */
export function judgeMachine(facts: MachineFacts): Finding[] {
  const { program, directory, owner, pathFacts, unit, config, disk, belongs, damaged, orchestratorKey, ports } = facts;
  const findings: Finding[] = [];
  if (unit !== null) findings.push(judgeUnit(program, unit));
  if (config !== null) findings.push(judgeConfig(config));
  findings.push(...judgeDirectory(facts));
  if (owner === null) return findings;
  findings.push(...pathFacts.flatMap((each) => judgePermissions('machine', each, owner) ?? []));
  if (disk !== null) findings.push(judgeDisk('machine', disk));
  if (damaged)
    findings.push(
      problem(
        'agent_orchestrator',
        `${directory}/orchestrator.json is invalid`,
        'The agent does not know its orchestrator.',
        `rm ${directory}/orchestrator.json; then run muster agents enroll, and paste the command on this machine`,
      ),
    );
  if (belongs !== null) findings.push(...judgeReachable(belongs), ...judgePin(belongs.key, orchestratorKey));
  if (unit !== null) findings.push(...ports.flatMap((port) => judgePort(program, port, unit.state === 'active') ?? []));
  return findings;
}

function judgeUnit(
  program: MachineFacts['program'],
  { name, state, enabled }: NonNullable<MachineFacts['unit']>,
): Finding {
  const shown = `${name} is ${state}`;
  if (state !== 'active')
    return problem(
      'unit',
      shown,
      `The ${program} of this machine is not running.`,
      `systemctl start ${name}; systemctl status ${name}; journalctl -u ${name} -n 50`,
    );
  if (enabled !== 'enabled')
    return warning(
      'unit',
      `${shown}, and ${enabled}`,
      'It does not start when the machine boots.',
      `systemctl enable ${name}`,
    );
  return ok('unit', `${shown} and enabled`);
}

/** Checks whether other users can read or change a configuration, which may contain passwords. */
function judgeConfig({ path, mode }: NonNullable<MachineFacts['config']>): Finding {
  const shown = `${path} is ${mode.toString(8).padStart(4, '0')}`;
  if ((mode & 0o027) === 0) return ok('config_mode', shown);
  const change = (mode & 0o022) !== 0;
  return problem(
    'config_mode',
    `${shown}: other users can ${change ? 'change' : 'read'} it`,
    change
      ? 'It sets the first admin and the destinations of notifications.'
      : 'It may contain passwords, such as those of the database and of the mail server.',
    `sudo chgrp muster ${path} && sudo chmod 640 ${path}`,
  );
}

/** Checks that the data directory exists and that this user can read it. */
function judgeDirectory({ program, directory, readable, closed, owner }: MachineFacts): Finding[] {
  if (owner === null && !closed)
    return [
      problem(
        'data_directory',
        `${directory} does not exist`,
        `The ${program} never ran here, or uses another --data-dir.`,
        program === 'agent' ? 'To enroll it: muster agents enroll' : 'To specify its directory: --data-dir',
      ),
    ];
  if (owner !== null && readable) return [];
  return [
    warning(
      'data_directory',
      `you have no access to ${directory}`,
      'Its content was not checked.',
      'sudo muster doctor',
    ),
  ];
}

/** Reports which addresses of the agent's orchestrator responded. */
function judgeReachable({ addresses }: NonNullable<MachineFacts['belongs']>): Finding[] {
  const responds = addresses.some(({ error }) => error === null);
  return addresses.map(({ address, error }) => {
    if (error === null) return ok('agent_orchestrator', `its orchestrator at ${address} answers`);
    return (responds ? warning : problem)(
      'agent_orchestrator',
      `its orchestrator at ${address} does not answer: ${error}`,
      responds ? 'The agent uses its other addresses.' : 'The agent cannot connect.',
      'Check that it runs and that the port is open. To use another address: muster agent connect HOST:PORT',
    );
  });
}

/** Compares the key that the agent pinned with the orchestrator's key, if both are known. */
function judgePin(pinned: string | null, orchestratorKey: string | null): Finding[] {
  if (pinned === null)
    return [
      warning(
        'agent_pin',
        'the agent has not pinned an orchestrator key yet',
        'It has never connected.',
        'To see why: journalctl -u muster-agent -n 50',
      ),
    ];
  if (orchestratorKey === null) return [];
  return [
    pinned === orchestratorKey
      ? ok('agent_pin', 'the agent’s pinned key matches this orchestrator')
      : warning(
          'agent_pin',
          'the agent’s pinned key does not match this orchestrator',
          'It belongs to another orchestrator, or this one has a new key and the agent refuses it.',
          'To enroll it with this orchestrator: muster agents enroll, then paste the command on this machine',
        ),
  ];
}

/** @param runs whether the program itself is running; if not, an open port belongs to another program */
function judgePort(
  program: MachineFacts['program'],
  { port, what, listening }: MachineFacts['ports'][number],
  runs: boolean,
): Finding | null {
  const remedy = `To see which program listens: ss -ltnp 'sport = :${port}'`;
  if (runs && listening) return ok('port', `port ${port} (${what}) is open`);
  if (runs)
    return warning(
      'port',
      `nothing is listening on port ${port} (${what})`,
      'Unless another port is configured, no one can connect.',
      remedy,
    );
  if (!listening) return null;
  return problem('port', `another program listens on port ${port} (${what})`, `The ${program} cannot start.`, remedy);
}
