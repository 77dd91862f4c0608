import { type Disk, type Finding, findingsOf, judgeDisk, judgePlace, type Place } from './finding.ts';

/** A program of Muster on this machine: what was found of it. */
export interface MachineFacts {
  program: 'agent' | 'orchestrator';
  directory: string;
  /** Who looks: only root and the owner see what is inside. */
  uid: number;
  readable: boolean;
  /** The data directory cannot even be looked for, such as that of a service with a user of its own. */
  closed: boolean;
  /** Of the data directory; null: it is not there, or cannot be looked for. */
  owner: number | null;
  places: readonly Place[];
  /** Of an orchestrator: its configuration file; null: there is none in the usual place. */
  config: { path: string; mode: number } | null;
  /** What systemd says of its unit; null: there is no such unit, or no systemd. */
  unit: { name: string; state: string; enabled: string } | null;
  disk: Disk | null;
  /** Of an agent: where it belongs. */
  belongs: { address: string; key: string | null; error: string | null } | null;
  /** Of an agent: the file that says where it belongs is there, and does not say it. */
  damaged: boolean;
  /** The identity of the orchestrator that was asked; null: none was. */
  orchestratorKey: string | null;
  /** Of an orchestrator: its usual ports, and whether something listens. */
  ports: readonly { port: number; what: string; listening: boolean }[];
}

const { ok, warning, problem } = findingsOf('machine');

/** Whether users of the machine can read a configuration that may hold passwords, or change it. */
function judgeConfig({ path, mode }: NonNullable<MachineFacts['config']>): Finding {
  const shown = `${path} is ${mode.toString(8).padStart(4, '0')}`;
  if ((mode & 0o027) === 0) return ok('config_mode', shown);
  const change = (mode & 0o022) !== 0;
  return problem(
    'config_mode',
    `${shown}: others can ${change ? 'change' : 'read'} it`,
    change
      ? 'It decides who is the first admin and where notifications go.'
      : 'It may hold passwords, such as those of the database and of mail.',
    `sudo chgrp muster ${path} && sudo chmod 640 ${path}`,
  );
}

/** What is to be said of a program that is, or should be, on this machine. */
export function judgeMachine(facts: MachineFacts): Finding[] {
  const { program, directory, readable, closed, owner, places, unit, disk, belongs, damaged, orchestratorKey, ports } =
    facts;
  const findings: Finding[] = [];
  if (unit !== null) {
    const told = `${unit.name} is ${unit.state}`;
    const log = `systemctl status ${unit.name}; journalctl -u ${unit.name} -n 50`;
    if (unit.state !== 'active')
      findings.push(
        problem('unit', told, `The ${program} of this machine does not run.`, `systemctl start ${unit.name}; ${log}`),
      );
    else if (unit.enabled !== 'enabled')
      findings.push(
        warning(
          'unit',
          `${told}, and ${unit.enabled}`,
          'It will not be there after a restart.',
          `systemctl enable ${unit.name}`,
        ),
      );
    else findings.push(ok('unit', `${told} and enabled`));
  }
  if (facts.config !== null) findings.push(judgeConfig(facts.config));
  const unseen = () =>
    warning(
      'data_directory',
      `${directory} is closed to you`,
      'What is in it was not looked at.',
      'sudo muster doctor',
    );
  if (owner === null) {
    if (closed) return [...findings, unseen()];
    findings.push(
      problem(
        'data_directory',
        `there is no ${directory}`,
        `The ${program} never ran here, or with another --data-dir.`,
        program === 'agent' ? 'Let it in: muster agents enroll' : 'Name the directory: --data-dir',
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
        `${directory}/orchestrator.json is damaged`,
        'The agent does not know where it belongs.',
        `rm ${directory}/orchestrator.json, then muster agents enroll, and paste the line on this machine`,
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
            'Is it running, is the port open? Another address: muster agent connect HOST:PORT',
          ),
    );
    if (belongs.key === null)
      findings.push(
        warning('agent_pin', 'it has not pinned the key of its orchestrator yet', 'It never was connected.', null),
      );
    else if (orchestratorKey !== null)
      findings.push(
        belongs.key === orchestratorKey
          ? ok('agent_pin', 'the key that it pinned is that of the orchestrator asked here')
          : warning(
              'agent_pin',
              'the key that it pinned is not that of the orchestrator asked here',
              'It belongs to another one, or that one was made anew and it refuses to connect.',
              'If it should belong here: muster agents enroll, and paste the line on this machine',
            ),
      );
  }
  const runs = unit?.state === 'active';
  for (const { port, what, listening } of unit === null ? [] : ports) {
    const who = `See who: ss -ltnp 'sport = :${port}'`;
    if (runs && listening) findings.push(ok('port', `port ${port}, ${what}, is open`));
    else if (runs)
      findings.push(
        warning(
          'port',
          `nothing listens on port ${port}, ${what}`,
          'Unless it is configured otherwise, nobody can connect.',
          who,
        ),
      );
    else if (listening)
      findings.push(
        problem('port', `something else listens on port ${port}, ${what}`, `The ${program} cannot start there.`, who),
      );
  }
  return findings;
}
