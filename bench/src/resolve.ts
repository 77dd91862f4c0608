import {
  type AgentFacts,
  type Json,
  type ModuleDocument,
  parseModule,
  resolveDesiredSet,
} from '@muster/protocol/module';
import { conclude } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';

/**
 * Measures the CPU time to resolve a module for many agents. All agents differ, so no resolution can be shared. One
 * module has conditions and loops in CEL. The baseline is a module with the same number of resources that needs no CEL:
 * names with defaults, conditions as mappings, variants, and a loop over a list.
 *
 *     node bench/src/resolve.ts [--agents 10000] [--rounds 5] [--json]
 */
const { agents: agentCount, rounds } = benchOptions({ numbers: { agents: [10_000, 20], rounds: [5, 1] } });
/** Number of resources that each module has for each agent. */
const resourceCount = 40;

const users = Array.from({ length: 5 }, (_, n) => ({ name: `user${n}`, admin: n === 0, keys: [`a${n}`, `b${n}`] }));
const ports = [80, 443, 8080, 8443, 9000, 9090, 9100, 9200, 9300, 9400];
const hosts = ports.map((port) => `host-${port}.example`);
const parameters: Record<string, Json> = { hosts, ports, users, domain: 'example.org', tls: true };

const declarations = {
  hosts: { type: 'list' },
  ports: { type: 'list' },
  users: { type: 'list' },
  domain: { type: 'string' },
  tls: { type: 'boolean' },
};
const times = (count: number, resource: (n: number) => object): object[] =>
  Array.from({ length: count }, (_, n) => resource(n));
const file = (path: string, content: string, more = {}) => ({ resource: { 'file-unix': { path, content, ...more } } });

const modules: Readonly<Record<'plain' | 'cel', object>> = {
  plain: {
    resources: [
      { id: 'host', for_each: '${{ param.hosts }}', ...file('/etc/hosts.d/${{ each }}', 'name ${{ each }}\n') },
      ...times(10, (n) => ({
        id: `distro${n}`,
        variants: [
          { when: { family: 'debian' }, ...file(`/etc/distro/${n}`, 'apt\n') },
          { when: { family: 'redhat' }, ...file(`/etc/distro/${n}`, 'dnf\n') },
        ],
      })),
      ...times(10, (n) => ({
        id: `site${n}`,
        when: { platform: 'linux', 'tag.site': 'paris' },
        ...file(`/etc/site/${n}`, 'rack ${{ attr.rack | default("none") }} of ${{ tag.site }}\n', { mode: '0644' }),
      })),
      ...times(10, (n) => ({
        id: `file${n}`,
        depends_on: [`site${n}`],
        ...file(`/etc/files/${n}`, '${{ agent.name }} in ${{ param.domain }}: ${{ param.hosts | join(" ") }}\n'),
      })),
    ],
  },
  cel: {
    resources: [
      {
        id: 'key',
        for_each: { user: 'param.users', key: 'user.keys' },
        where: 'user.name != "guest" && size(key) > 1',
        ...file('/etc/keys/${{ user.name }}-${{ key }}', '${{ user.admin ? "admin" : "user" }} ${{ key }}\n'),
      },
      ...times(10, (n) => ({
        id: `distro${n}`,
        when: `param.tls && attr.family in ["debian", "redhat"] && int(attr.cpus) > ${n - 10}`,
        ...file(`/etc/distro/${n}`, '${{ attr.family == "debian" ? "apt" : "dnf" }}\n'),
      })),
      ...times(10, (n) => ({
        id: `site${n}`,
        ...file(
          `/etc/site/${n}`,
          [
            'workers ${{ int(attr.cpus) * 2 }}',
            '${{ for port in param.ports }}',
            'listen ${{ port }}${{ if port == 443 && param.tls }} ssl${{ end }}',
            '${{ end }}',
            '',
          ].join('\n'),
          { mode: "${{ param.tls ? '0600' : '0644' }}" },
        ),
      })),
      ...times(10, (n) => ({
        id: `file${n}`,
        depends_on: [`site${n}`],
        ...file(
          `/etc/files/${n}`,
          '${{ agent.name + "." + param.domain }} ${{ param.hosts.filter(host, host != agent.name) | join(" ") }}\n',
        ),
      })),
    ],
  },
};

function documentOf(name: 'plain' | 'cel'): ModuleDocument {
  const source = { name, supports: [{ platform: 'linux' }], parameters: declarations, ...modules[name] };
  const parsed = parseModule(JSON.stringify(source));
  if (!parsed.ok) throw new Error(`the module ${name} is invalid: ${parsed.faults[0]?.message}`);
  return parsed.module;
}

const agentAt = (n: number): AgentFacts => ({
  name: `agent-${n}`,
  node_id: n.toString(16).padStart(32, '0'),
  attributes: {
    platform: 'linux',
    family: n % 3 === 0 ? 'redhat' : 'debian',
    cpus: String(1 + (n % 64)),
    rack: `r${n % 500}`,
    'net.address': `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
  },
  tags: { site: 'paris' },
});
const agents = Array.from({ length: agentCount }, (_, n) => agentAt(n));

/** @returns microseconds of CPU time per resource, including garbage collection */
function microseconds(document: ModuleDocument): number {
  const before = process.cpuUsage();
  for (const agent of agents) {
    const resolved = resolveDesiredSet({ modules: [document], parameters: { [document.name]: parameters }, agent });
    if (!resolved.ok) throw new Error(`${document.name}: ${resolved.faults[0]?.message}`);
    if (resolved.resources.length !== resourceCount)
      throw new Error(`${document.name} has ${resolved.resources.length} resources instead of ${resourceCount}`);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / agents.length / resourceCount;
}

const [plain, cel] = [documentOf('plain'), documentOf('cel')];
const found: { plain: number; cel: number }[] = [];
for (let round = 0; round < rounds; round++) {
  const figures = { plain: microseconds(plain), cel: microseconds(cel) };
  found.push(figures);
  printProgress(`round ${round + 1}: ${figures.cel.toFixed(1)} vs. ${figures.plain.toFixed(1)} µs per resource`);
}
const middle = { plain: median(found.map((one) => one.plain)), cel: median(found.map((one) => one.cel)) };
const sizes = `${agentCount} agents, ${resourceCount} resources each, ${rounds} rounds`;
console.log(`${sizes}, median\n`);
console.log(
  table(
    ['module', 'µs per resource', 'ms per agent'],
    [
      ['conditions and loops in CEL', middle.cel, (middle.cel * resourceCount) / 1000],
      ['names, mappings, variants, a loop over a list', middle.plain, (middle.plain * resourceCount) / 1000],
    ],
  ),
);
console.log(`\n${ratioLine('CPU time', middle.cel, middle.plain, 'µs per resource')}\n`);
process.exitCode = conclude('resolve', { sizes, figures: { cel: middle.cel, plain: middle.plain } });
