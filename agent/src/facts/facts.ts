import { arch, cpus, hostname, release, totalmem } from 'node:os';
import { limits } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import { exists, linkTarget, readText } from '../host/read-system.ts';
import { customFacts } from './custom-facts.ts';

/** What the agent says of its machine: attributes, all of them strings. */

export interface FactOptions {
  /** Directory of YAML and executable files that add attributes; absent: none. */
  factsDir?: string;
  /** What is said instead of the machine's own name. */
  hostname?: string | null;
  clock: Clock;
  /** Called with the file and what is wrong with it; the others count all the same. */
  warn(file: string, problem: string): void;
  /** Where /etc, /proc, /run and /sys are, for tests. */
  root?: string;
}

/** Limits of what an agent may say; the orchestrator refuses more. */
const { maxAttributes, maxAttributeLength: maxValue, attributesBytes } = limits;
const maxKey = 128;
/** Names of what was left out that are shown. */
const maxNamed = 5;

/**
 * Gathers the attributes. Files of `factsDir` come after the built-in ones and cannot replace them: variants are
 * chosen by those, so that they are also never left out for them where there is not room for all.
 */
export async function gatherFacts(options: FactOptions): Promise<Record<string, string>> {
  const { root = '', factsDir } = options;
  const facts = builtInFacts(root);
  if (options.hostname) facts.hostname = options.hostname.slice(0, maxValue);
  if (factsDir === undefined) return facts;
  const sizeOf = (key: string, value: string) => Buffer.byteLength(JSON.stringify([key, value]));
  let count = Object.keys(facts).length;
  let bytes = Object.entries(facts).reduce((sum, [key, value]) => sum + sizeOf(key, value), 0);
  const leftOut: string[] = [];
  const custom = await customFacts(factsDir, options.clock, options.warn);
  for (const [key, value] of Object.entries(custom)) {
    if (Object.hasOwn(facts, key)) options.warn(factsDir, `${key} is a built-in attribute and is not replaced`);
    else if (key === '' || key.length > maxKey) options.warn(factsDir, `the name ${key.slice(0, 40)}… is too long`);
    else {
      const cut = value.slice(0, maxValue);
      const size = sizeOf(key, cut);
      if (count >= maxAttributes || bytes + size > attributesBytes) {
        leftOut.push(key);
        continue;
      }
      facts[key] = cut;
      count++;
      bytes += size;
    }
  }
  if (leftOut.length > 0)
    options.warn(
      factsDir,
      `${leftOut.length} attributes are left out, as ${maxAttributes} of them and ${attributesBytes / 1024} KiB in all are the most: ${leftOut.slice(0, maxNamed).join(', ')}${leftOut.length > maxNamed ? ', …' : ''}`,
    );
  return facts;
}

/** @param root what stands for / in tests */
export function builtInFacts(root: string): Record<string, string> {
  const facts: Record<string, string | null> = {
    platform: process.platform === 'darwin' ? 'macos' : process.platform === 'win32' ? 'windows' : process.platform,
    ...osRelease(root),
    arch: architectureOf(arch()),
    init_system: initSystem(root),
    hostname: hostname(),
    kernel: release(),
    cpus: String(cpus().length),
    memory_bytes: String(totalmem()),
    virtualization: virtualization(root),
    timezone: timezone(root),
  };
  return Object.fromEntries(
    Object.entries(facts).flatMap(([key, value]) =>
      value === null || value === '' ? [] : [[key, value.slice(0, maxValue)]],
    ),
  );
}

/** The words that modules use, not those of Node. */
export function architectureOf(node: string): string {
  const names: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64', arm: 'armv7' };
  return names[node] ?? node;
}

/** ID and VERSION_ID of os-release, whose values are quoted as in a shell. */
export function osRelease(root: string): { distro: string | null; version: string | null } {
  const text = readText(`${root}/etc/os-release`) ?? readText(`${root}/usr/lib/os-release`) ?? '';
  const field = (name: string): string | null => {
    const value = new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1]?.trim();
    if (value === undefined) return null;
    return value.replace(/^(["'])(.*)\1$/, '$2').replace(/\\(.)/g, '$1');
  };
  return { distro: field('ID')?.toLowerCase() ?? null, version: field('VERSION_ID') };
}

/** What runs the services, by what it leaves where it runs; then by what is installed. */
export function initSystem(root: string): string | null {
  if (process.platform === 'darwin') return 'launchd';
  if (process.platform === 'win32') return 'scm';
  if (exists(`${root}/run/systemd/system`)) return 'systemd';
  if (exists(`${root}/run/openrc`)) return 'openrc';
  const first = readText(`${root}/proc/1/comm`)?.trim() ?? '';
  if (first === 'systemd') return 'systemd';
  if (first.startsWith('openrc')) return 'openrc';
  // In a container nothing of the kind runs; modules then go by what the system is made for.
  if (exists(`${root}/usr/lib/systemd/systemd`) || exists(`${root}/lib/systemd/systemd`)) return 'systemd';
  if (exists(`${root}/sbin/openrc`) || exists(`${root}/usr/sbin/openrc`)) return 'openrc';
  if (exists(`${root}/etc/init.d`)) return 'init.d';
  return null;
}

/** The hypervisor or kind of container, as the system lets it be known; `none` on hardware. */
export function virtualization(root: string): string {
  if (exists(`${root}/.dockerenv`)) return 'docker';
  if (exists(`${root}/run/.containerenv`)) return 'podman';
  const container = readText(`${root}/run/systemd/container`)?.trim();
  if (container) return container;
  const maker = `${readText(`${root}/sys/class/dmi/id/sys_vendor`) ?? ''} ${readText(`${root}/sys/class/dmi/id/product_name`) ?? ''}`;
  const makers: readonly (readonly [RegExp, string])[] = [
    [/KVM/i, 'kvm'],
    [/QEMU/i, 'qemu'],
    [/VMware/i, 'vmware'],
    [/VirtualBox|innotek/i, 'virtualbox'],
    [/Xen/i, 'xen'],
    [/Amazon EC2/i, 'amazon'],
    [/Google/i, 'google'],
    [/Virtual Machine/i, 'hyperv'],
  ];
  // Firmware of QEMU says QEMU whatever accelerates it, and the smallest machines have no firmware to ask.
  const clocks = readText(`${root}/sys/devices/system/clocksource/clocksource0/available_clocksource`) ?? '';
  const onKvm = /\bkvm-clock\b/.test(clocks);
  for (const [pattern, name] of makers) if (pattern.test(maker)) return name === 'qemu' && onKvm ? 'kvm' : name;
  if (!/^flags\s*:.*\bhypervisor\b/m.test(readText(`${root}/proc/cpuinfo`) ?? '')) return 'none';
  return onKvm ? 'kvm' : 'unknown';
}

export function timezone(root: string): string {
  const name = /zoneinfo\/(?:posix\/|right\/)?(.+)$/.exec(linkTarget(`${root}/etc/localtime`) ?? '')?.[1];
  if (name !== undefined) return name;
  // Not a link: Debian keeps the name beside it.
  return readText(`${root}/etc/timezone`)?.trim() || 'UTC';
}
