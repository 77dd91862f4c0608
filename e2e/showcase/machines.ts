import type { Sample } from '@muster/protocol';
import type { Description } from './agent.ts';

export interface ShowcaseMachine extends Description {
  /** The agent's name; null if it waits for approval. */
  name: string | null;
  tags: Record<string, string>;
  /** What happens to the agent after its first connection. */
  fate: 'stays' | 'lost' | 'rejected';
}

const debian = { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', init_system: 'systemd' };
const ubuntu = { ...debian, distro: 'ubuntu', version: '24.04' };
const alpine = { platform: 'linux', distro: 'alpine', version: '3.22', arch: 'aarch64', init_system: 'openrc' };
const fedora = { ...debian, distro: 'fedora', version: '42' };

interface Group {
  prefix: string;
  count: number;
  system: Record<string, string>;
  cpus: number;
  gigabytes: number;
  tags: Record<string, string>;
}

const groups: readonly Group[] = [
  {
    prefix: 'web-paris',
    count: 10,
    system: debian,
    cpus: 8,
    gigabytes: 16,
    tags: { role: 'web', site: 'paris', env: 'production' },
  },
  {
    prefix: 'web-berlin',
    count: 10,
    system: debian,
    cpus: 8,
    gigabytes: 16,
    tags: { role: 'web', site: 'berlin', env: 'production' },
  },
  {
    prefix: 'web-staging',
    count: 2,
    system: debian,
    cpus: 4,
    gigabytes: 8,
    tags: { role: 'web', site: 'paris', env: 'staging' },
  },
  {
    prefix: 'db-paris',
    count: 3,
    system: debian,
    cpus: 32,
    gigabytes: 256,
    tags: { role: 'database', site: 'paris', env: 'production' },
  },
  {
    prefix: 'db-berlin',
    count: 3,
    system: debian,
    cpus: 32,
    gigabytes: 256,
    tags: { role: 'database', site: 'berlin', env: 'production' },
  },
  { prefix: 'build', count: 6, system: ubuntu, cpus: 16, gigabytes: 64, tags: { role: 'build', site: 'paris' } },
  { prefix: 'gpu', count: 2, system: fedora, cpus: 64, gigabytes: 512, tags: { role: 'training', site: 'berlin' } },
  { prefix: 'kiosk', count: 14, system: alpine, cpus: 4, gigabytes: 2, tags: { role: 'kiosk', site: 'factory' } },
  {
    prefix: 'edge',
    count: 4,
    system: { ...debian, arch: 'aarch64' },
    cpus: 4,
    gigabytes: 8,
    tags: { role: 'edge', site: 'factory' },
  },
];

const lost = new Set(['kiosk-3', 'kiosk-11', 'build-6']);
const kernels: Record<string, string> = {
  debian: '6.1.0-40-amd64',
  ubuntu: '6.8.0-79-generic',
  alpine: '6.12.44-0-rpi',
  fedora: '6.16.4-200.fc42',
};

const machineOf = (group: Group, number: number): ShowcaseMachine => {
  const name = `${group.prefix}-${number}`;
  return {
    name,
    hostname: `${name}.example.net`,
    attributes: {
      ...group.system,
      hostname: `${name}.example.net`,
      kernel: kernels[group.system.distro as string] as string,
      cpus: String(group.cpus),
      memory_bytes: String(group.gigabytes * 2 ** 30),
      virtualization: group.prefix === 'edge' || group.prefix === 'kiosk' ? 'none' : 'kvm',
      timezone: group.tags.site === 'berlin' ? 'Europe/Berlin' : 'Europe/Paris',
      'hardware.rack': `${(group.tags.site ?? 'x').charAt(0).toUpperCase()}${1 + (number % 4)}`,
    },
    tags: group.tags,
    fate: lost.has(name) ? 'lost' : 'stays',
  };
};

const waiting = (hostname: string, system: Record<string, string>, fate: ShowcaseMachine['fate'] = 'stays') => ({
  ...{ name: null, hostname, attributes: { ...system, hostname, cpus: '4' }, tags: {}, fate },
});

export const showcaseMachines: readonly ShowcaseMachine[] = [
  ...groups.flatMap((group) => Array.from({ length: group.count }, (_, index) => machineOf(group, index + 1))),
  waiting('kiosk-15.factory.example.net', alpine),
  waiting('kiosk-16.factory.example.net', alpine),
  waiting('db-paris-4.example.net', debian),
  waiting('laptop-of-jo', fedora),
  waiting('unknown-raspberry', alpine, 'rejected'),
];

interface Span {
  /** Seconds between samples. */
  step: number;
  count: number;
}
export const lastHour: Span = { step: 60, count: 61 };
export const lastDay: Span = { step: 120, count: 721 };

/** Returns samples of a typical machine: load during working hours, a backup at night, a disk that fills slowly. */
export function samplesOf({ attributes }: Description, seed: number, { step, count }: Span, now: number): Sample[] {
  const memory = Number(attributes.memory_bytes ?? 4 * 2 ** 30);
  const cpus = Number(attributes.cpus ?? 4);
  const noise = (at: number, salt: number) => {
    const value = Math.sin(at * 12.9898 + salt * 78.233 + seed * 37.719) * 43_758.5453;
    return value - Math.floor(value);
  };
  return Array.from({ length: count }, (_, index) => {
    const at = now - (count - 1 - index) * step;
    const hour = (at % 86_400) / 3600;
    const day = Math.max(0, Math.sin(((hour - 6) / 14) * Math.PI));
    const spike = noise(Math.floor(at / 1800), 3) > 0.93 ? 35 : 0;
    const cpu = Math.min(99, 4 + (seed % 9) + day * (18 + (seed % 5) * 6) + noise(at, 1) * 7 + spike);
    const used = 0.35 + 0.03 * (seed % 6) + 0.12 * day + 0.02 * noise(Math.floor(at / 300), 2);
    return {
      collected_at: at,
      cpu_usage: Math.round(cpu * 10) / 10,
      memory_total: memory,
      memory_used: Math.floor(memory * used),
      swap_used: Math.floor(memory * 0.01 * noise(Math.floor(at / 3600), 4)),
      disk_total: 512 * 2 ** 30,
      disk_used: Math.floor(512 * 2 ** 30 * (0.3 + 0.04 * (seed % 12) + (at % 86_400) / 4e6)),
      load1: Math.round(((cpu / 100) * cpus + noise(at, 5) * 0.4) * 100) / 100,
      net_rx_bytes: Math.floor(at % 864_000) * 180_000 + Math.floor(noise(at, 6) * 1e6),
      net_tx_bytes: Math.floor(at % 864_000) * 65_000 + Math.floor(noise(at, 7) * 1e6),
      processes: 140 + Math.floor(noise(Math.floor(at / 600), 8) * 30),
      uptime: 1_200_000 + seed * 86_400 - (now - at),
    };
  });
}
