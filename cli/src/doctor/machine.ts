import { type Disk, type Finding, findingsOf, judgeDisk, judgePlace, type Place } from './finding.ts';

/** Facts about a program of Muster on this machine. */
export interface MachineFacts {
  program: 'agent' | 'orchestrator';
  directory: string;
  /** The uid of this process; only root and the owner can look inside. */
  uid: number;
  readable: boolean;
  /** Searching for the data directory is not permitted, e.g. below a directory of another user. */
  closed: boolean;
  /** Owner of the data directory; null if it does not exist or cannot be found. */
  owner: number | null;
  places: readonly Place[];
  /** Configuration file of an orchestrator; null if it is not in the usual place. */
  config: { path: string; mode: number } | null;
  /** State of the systemd unit; null without the unit or systemd. */
  unit: { name: string; state: string; enabled: string } | null;
  disk: Disk | null;
  /** The orchestrator of an agent. */
  belongs: { address: string; key: string | null; error: string | null } | null;
  /** True if the agent's file about its orchestrator is invalid. */
  damaged: boolean;
  /** Public key of the orchestrator that was asked; null if none was. */
  orchestratorKey: string | null;
  /** Usual ports of an orchestrator, and whether something listens there. */
  ports: readonly { port: number; what: string; listening: boolean }[];
}

const { ok, warning, problem } = findingsOf('machine');

/** Checks whether other users can read or change a configuration, which may hold passwords. */
function judgeConfig({ path, mode }: NonNullable<MachineFacts['config']>): Finding {
  const shown = `${path} is ${mode.toString(8).padStart(4, '0')}`;
  if ((mode & 0o027) === 0) return ok('config_mode', shown);
  const change = (mode & 0o022) !== 0;
  return problem(
    'config_mode',
    `${shown}: other users can ${change ? 'change' : 'read'} it`,
    change
      ? 'It sets the first admin and the destinations of notifications.'
      : 'It may hold passwords, e.g. of the database and of mail.',
    `sudo chgrp muster ${path} && sudo chmod 640 ${path}`,
  );
}

export function judgeMachine(facts: MachineFacts): Finding[] {
  const { program, directory, readable, closed, owner, places, unit, disk, belongs, damaged, orchestratorKey, ports } =
    facts;
  const findings: Finding[] = [];
  if (unit !== null) {
    const told = `${unit.name} is ${unit.state}`;
    const log = `systemctl status ${unit.name}; journalctl -u ${unit.name} -n 50`;
    if (unit.state !== 'active')
      findings.push(
        problem('unit', told, `The ${program} of this machine is not running.`, `systemctl start ${unit.name}; ${log}`),
      );
    else if (unit.enabled !== 'enabled')
      findings.push(
        warning(
          'unit',
          `${told}, and ${unit.enabled}`,
          'It will not start when the machine does.',
          `systemctl enable ${unit.name}`,
        ),
      );
    else findings.push(ok('unit', `${told} and enabled`));
  }
  if (facts.config !== null) findings.push(judgeConfig(facts.config));
  const unseen = () =>
    warning(
      'data_directory',
      `you have no access to ${directory}`,
      'Its content was not checked.',
      'sudo muster doctor',
    );
  if (owner === null) {
    if (closed) return [...findings, unseen()];
    findings.push(
      problem(
        'data_directory',
        `${directory} does not exist`,
        `The ${program} never ran here, or uses another --data-dir.`,
        program === 'agent' ? 'Enroll it: muster agents enroll' : 'Give its directory: --data-dir',
      ),
    );
    return findings;
  }
  if (!readable) findings.push(unseen());
  findings.push(...places.flatMap((place) => judgePlace('machine', place, owner) ?? []));
  if (disk !== null) findings.push(judgeDisk('machine', disk));
  if (damaged)
    findings.push(
      problem(
        'agent_orchestrator',
        `${directory}/orchestrator.json is invalid`,
        'The agent does not know its orchestrator.',
        `rm ${directory}/orchestrator.json, then muster agents enroll, and paste the command on this machine`,
      ),
    );
  if (belongs !== null) {
    findings.push(
      belongs.error === null
        ? ok('agent_orchestrator', `its orchestrator at ${belongs.address} answers`)
        : problem(
            'agent_orchestrator',
            `its orchestrator at ${belongs.address} does not answer: ${belongs.error}`,
            'The agent cannot connect.',
            'Check that it runs and that the port is open. To use another address: muster agent connect HOST:PORT',
          ),
    );
    if (belongs.key === null)
      findings.push(
        warning('agent_pin', 'the agent has not pinned an orchestrator key yet', 'It has never connected.', null),
      );
    else if (orchestratorKey !== null)
      findings.push(
        belongs.key === orchestratorKey
          ? ok('agent_pin', 'the agent’s pinned key is that of this orchestrator')
          : warning(
              'agent_pin',
              'the agent’s pinned key is not that of this orchestrator',
              'It belongs to another orchestrator, or this one has a new key and the agent refuses it.',
              'If it should belong here: muster agents enroll, and paste the command on this machine',
            ),
      );
  }
  const runs = unit?.state === 'active';
  for (const { port, what, listening } of unit === null ? [] : ports) {
    const who = `See which program listens: ss -ltnp 'sport = :${port}'`;
    if (runs && listening) findings.push(ok('port', `port ${port} (${what}) is open`));
    else if (runs)
      findings.push(
        warning(
          'port',
          `nothing listens on port ${port} (${what})`,
          'Unless another port is configured, no one can connect.',
          who,
        ),
      );
    else if (listening)
      findings.push(
        problem('port', `another program listens on port ${port} (${what})`, `The ${program} cannot start.`, who),
      );
  }
  return findings;
}
