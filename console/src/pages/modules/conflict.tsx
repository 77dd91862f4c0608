import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Time } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';
import type { Draft, Stored } from './draft.ts';
import { TextDiff } from './text-diff.tsx';

/** Shows both versions if another operator saved a revision during editing, and asks the operator to choose one. */
export function Conflict({
  draft,
  latest,
  onKeep,
  onTake,
}: {
  readonly draft: Draft;
  readonly latest: Stored;
  readonly onKeep: () => void;
  readonly onTake: () => void;
}) {
  return (
    <div className="space-y-2">
      <Callout
        tone="warn"
        title={
          <>
            <OperatorName id={latest.uploaded_by} /> saved revision {latest.revision} <Time at={latest.uploaded_at} />,
            while you were editing
          </>
        }
        action={
          <>
            <Button small onClick={onTake}>
              Discard mine, use revision {latest.revision}
            </Button>
            <Button small look="primary" onClick={onKeep}>
              Keep mine
            </Button>
          </>
        }
      >
        Your text is not lost. Compare the two, copy what you need, then keep yours and save it as the next revision.
      </Callout>
      <TextDiff
        before={latest.content}
        after={draft.text}
        beforeLabel={`Revision ${latest.revision}`}
        afterLabel="Your text"
      />
    </div>
  );
}
