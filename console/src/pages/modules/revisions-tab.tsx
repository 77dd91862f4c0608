import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { bytesText } from '../../../../client/src/byte-text.ts';
import { fileChanges } from '../../../../client/src/file-changes.ts';
import { moduleQuery, revisionsQuery } from '../../api/modules/modules.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Id } from '../../parts/copy.tsx';
import { Select } from '../../parts/form/field.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Loading, PanelSkeleton } from '../../parts/skeletons.tsx';
import { Failure, Skeleton } from '../../parts/states.tsx';
import { visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { OperatorName } from '../links.tsx';
import type { Stored } from './draft.ts';
import { TextDiff } from './text-diff.tsx';

/** Lists a module's revisions, compares two of them, and loads an old one into the editor. */
export function RevisionsTab({
  name,
  onRestore,
}: {
  readonly name: string;
  /** Loads an old revision into the editor. */
  readonly onRestore: (old: Stored) => void;
}) {
  const revisions = useQuery(revisionsQuery(name));
  const [older, setOlder] = useUrlState<string>('from', '');
  const [newer, setNewer] = useUrlState<string>('to', '');
  const [shown, setShown] = useState(50);
  if (revisions.isPending)
    return (
      <Loading label="Loading the revisions" className="grid gap-4 xl:grid-cols-[17rem_minmax(0,1fr)]">
        <PanelSkeleton title="Revisions" rows={4} size="entry" />
        <Skeleton className="h-40 w-full" />
      </Loading>
    );
  if (revisions.isError) return <Failure error={revisions.error} retry={() => void revisions.refetch()} />;
  const numbers = revisions.data.map(({ revision }) => revision);
  const latest = numbers[0] ?? 1;
  const to = numbers.includes(Number(newer)) ? Number(newer) : latest;
  const below = numbers.find((revision) => revision < to) ?? to;
  const from = numbers.includes(Number(older)) ? Number(older) : below;
  const choice = (label: string, value: number, set: (value: string) => void) => (
    <div className="flex items-center gap-2">
      <Select label={label} hideLabel value={String(value)} onChange={(event) => set(event.target.value)}>
        {numbers.map((revision) => (
          <option key={revision} value={revision}>
            Revision {revision}
          </option>
        ))}
      </Select>
    </div>
  );
  return (
    <div className="grid gap-4 xl:grid-cols-[17rem_minmax(0,1fr)]">
      <Panel title="Revisions" flush className="self-start">
        <ol className="max-h-[70vh] divide-y overflow-y-auto" tabIndex={0} aria-label="Revisions">
          {revisions.data.slice(0, shown).map(({ revision, uploaded_at, uploaded_by, digest }) => (
            <li key={revision} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-sm">
              <span className="tabular w-8 font-medium">{revision}</span>
              <span className="min-w-0 flex-1 text-muted text-xs">
                <OperatorName id={uploaded_by} /> · <Time at={uploaded_at} />
                <span className="block">
                  <Id id={digest} />
                </span>
              </span>
              {revision === latest ? (
                <Badge tone="good">current</Badge>
              ) : (
                <Button
                  small
                  look="quiet"
                  aria-label={`Compare revision ${revision} with the current one`}
                  onClick={() => {
                    setOlder(String(revision));
                    setNewer('');
                  }}
                >
                  Compare
                </Button>
              )}
            </li>
          ))}
        </ol>
        {shown < numbers.length && (
          <div className="border-t p-2 text-center">
            <Button small onClick={() => setShown(shown + 200)}>
              Show more
            </Button>
          </div>
        )}
      </Panel>
      <div className="min-w-0">
        {numbers.length < 2 ? (
          <Panel>
            <p className="text-muted text-sm">This module has one revision. Save a change to compare revisions here.</p>
          </Panel>
        ) : (
          <>
            <div className="mb-2 flex flex-wrap items-center gap-2 text-muted text-sm">
              {choice('Compare this revision', from, setOlder)}
              <span>with</span>
              {choice('With this revision', to, setNewer)}
              <RestoreButton name={name} revision={from} latest={latest} onRestore={onRestore} />
            </div>
            <Compared name={name} from={from} to={to} />
          </>
        )}
      </div>
    </div>
  );
}

function Compared({ name, from, to }: { readonly name: string; readonly from: number; readonly to: number }) {
  const before = useQuery(moduleQuery(name, from));
  const after = useQuery(moduleQuery(name, to));
  const failed = before.isError ? before : after.isError ? after : null;
  if (failed !== null) return <Failure error={failed.error} retry={() => void failed.refetch()} />;
  if (!before.isSuccess || !after.isSuccess) return <Skeleton className="h-40 w-full" />;
  const files = fileChanges(before.data.files ?? [], after.data.files ?? []);
  return (
    <div className="space-y-3">
      {before.data.content === after.data.content ? (
        <Panel>
          <p className="text-muted text-sm">
            {from === to ? 'Choose two different revisions.' : `Revisions ${from} and ${to} have the same text.`}
          </p>
        </Panel>
      ) : (
        <TextDiff
          before={before.data.content}
          after={after.data.content}
          beforeLabel={`Revision ${from}`}
          afterLabel={`Revision ${to}`}
        />
      )}
      {files.length > 0 && (
        <Panel title="Files" flush>
          <ul className="max-h-[50vh] divide-y overflow-y-auto" tabIndex={0} aria-label="Files that differ">
            {files.map(({ path, change, from: old, to: next }) => (
              <li key={path} className="flex flex-wrap items-center gap-x-3 px-4 py-2 text-sm">
                <span className="min-w-0 flex-1 break-all font-mono text-xs">{visibleText(path)}</span>
                <span className="text-muted text-xs">
                  {[old, next].flatMap((file) => (file === null ? [] : bytesText(file.size))).join(' → ')}
                </span>
                <Badge tone={change === 'removed' ? 'bad' : change === 'added' ? 'good' : 'neutral'}>{change}</Badge>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </div>
  );
}

function RestoreButton({
  name,
  revision,
  latest,
  onRestore,
}: {
  readonly name: string;
  readonly revision: number;
  readonly latest: number;
  readonly onRestore: (old: Stored) => void;
}) {
  const { data } = useQuery(moduleQuery(name, revision));
  if (revision === latest || data === undefined) return null;
  return (
    <Button className="ml-auto" onClick={() => onRestore(data)}>
      Restore revision {revision}…
    </Button>
  );
}
