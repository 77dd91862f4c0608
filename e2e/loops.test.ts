import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyAgent, createAssignment, planAgent, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { test } from './harness.ts';

test('a plan and an apply agree on nested loops and on a template with loops and conditions', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  await stage.agent(orchestrator, 'web-1');
  const content = `name: m
supports: [{ platform: linux }]
parameters:
  sites: { type: list }
templates:
  - id: site
    content: |
      server \${{ site.name }} {
      \${{ for p in site.ports }}
        listen \${{ p }};
      \${{ end }}
      \${{ if has(site.tls) && site.tls }}
        tls;
      \${{ end }}
      }
  - id: all
    content: |
      # \${{ agent.name }}
      \${{ for site in param.sites }}
      \${{ include "site" }}
      \${{ end }}
resources:
  - { id: all, resource: { file-unix: { path: ${join(stage.dir, 'all')}, template: all } } }
  - id: port
    for_each: { site: param.sites, port: site.ports }
    where: port != 1
    resource:
      file-unix:
        path: "${stage.dir}/\${{ site.name }}-\${{ port }}"
        content: "x"
        mode: "\${{ site.mode | omit }}"
`;
  await call(uploadModule, { body: { name: 'm', content } });
  const sites = [
    { name: 'a', ports: [1, 2], tls: true, mode: '0600' },
    { name: 'b', ports: [3] },
  ];
  const selector = 'attr.platform=linux';
  await call(createAssignment, { body: { name: 'all', modules: ['m'], selector, parameters: { m: { sites } } } });
  const params = { node_id: 'web-1' };
  const planned = await call(planAgent, { params, body: { modules: [] } });
  const applied = await call(applyAgent, { params, body: { modules: [], plan_id: planned.operation_id } });
  expect(applied.status).toBe('succeeded');
  const brief = (resources: typeof planned.resources) => resources.map(({ id, action }) => [id, action]);
  expect(brief(planned.resources)).toEqual([
    ['all', 'create'],
    ['port[0,1]', 'create'],
    ['port[1,0]', 'create'],
  ]);
  expect(brief(applied.resources)).toEqual(brief(planned.resources));
  const written = readFileSync(join(stage.dir, 'all'), 'utf8');
  expect(written).toBe('# web-1\nserver a {\n  listen 1;\n  listen 2;\n  tls;\n}\nserver b {\n  listen 3;\n}\n');
  expect(
    planned.resources[0]?.diff
      ?.match(/^\+(?!\+)(.*)$/gm)
      ?.map((line) => `${line.slice(1)}\n`)
      .join(''),
  ).toBe(written);
  const again = await call(planAgent, { params, body: { modules: [] } });
  expect(again.resources.every(({ action }) => action === 'none')).toBe(true);
});
