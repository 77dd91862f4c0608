import type { Assignment } from '@muster/protocol/http';
import type { DeclaredParameter } from '../../editor/outline.ts';
import { Badge } from '../../parts/badge.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty } from '../../parts/states.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { AssignmentLink, ModuleLinks } from '../links.tsx';
import type { Stored } from './draft.ts';
import { AssignLink } from './module-rollout.tsx';

export function UsageTab({
  assignments,
  parameters,
  module,
}: {
  readonly assignments: readonly Assignment[];
  readonly parameters: readonly DeclaredParameter[];
  readonly module: Pick<Stored, 'name' | 'requires' | 'required_by'>;
}) {
  const { name, requires, required_by } = module;
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Panel title="Used by" flush className="self-start">
        {assignments.length === 0 ? (
          <Empty title="Not assigned" action={<AssignLink module={name} look="plain" />}>
            Add it to an assignment to apply it to matching agents.
          </Empty>
        ) : (
          <ul className="divide-y">
            {assignments.map((assignment) => (
              <li key={assignment.name} className="flex items-center gap-3 px-4 py-2 text-sm">
                <AssignmentLink name={assignment.name} />
                <span className="flex min-w-0 flex-1 font-mono text-muted text-xs">
                  <Line text={assignment.selector} />
                </span>
                <Badge>{assignment.mode}</Badge>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      {requires.length > 0 && <Modules title="Requires" names={requires} />}
      {required_by.length > 0 && <Modules title="Required by" names={required_by} />}
      <Panel title="Parameters" flush className="self-start">
        {parameters.length === 0 ? (
          <Empty title="No parameters">
            Declare parameters under <code className="font-mono">parameters</code> to set them in assignments.
          </Empty>
        ) : (
          <ul className="divide-y">
            {parameters.map((parameter) => (
              <li key={parameter.name} className="space-y-1 px-4 py-2 text-sm">
                <p className="flex flex-wrap items-center gap-x-3">
                  <code className="font-mono font-medium text-xs">{parameter.name}</code>
                  <span className="text-muted text-xs">{parameter.type}</span>
                  <span className="text-muted text-xs">
                    {parameter.default === undefined
                      ? 'must be set'
                      : `default ${JSON.stringify(parameter.default).slice(0, 200)}`}
                  </span>
                </p>
                {parameter.description !== null && (
                  <p className="text-muted">
                    <Text text={parameter.description} />
                  </p>
                )}
                <ul aria-label={`Where ${parameter.name} is set`}>
                  {assignments.map((assignment) => {
                    const value = assignment.parameters[name]?.[parameter.name];
                    return value === undefined ? null : (
                      <li key={assignment.name} className="flex min-w-0 items-center gap-2 text-xs">
                        <AssignmentLink name={assignment.name} />
                        <span className="text-muted">sets</span>
                        <Line text={JSON.stringify(value)} />
                      </li>
                    );
                  })}
                </ul>
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </div>
  );
}

const Modules = ({ title, names }: { readonly title: string; readonly names: readonly string[] }) => (
  <Panel title={title} flush className="self-start">
    <p className="px-4 py-2 text-sm">
      <ModuleLinks modules={names} />
    </p>
  </Panel>
);
