import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Time } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';
import type { Draft, Stored } from './draft.ts';
import { TwoTexts } from './two-texts.tsx';

/** Somebody else stored another text while this one was written: both are shown, and nothing is lost unasked. */
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
            <OperatorName id={latest.uploaded_by} /> stored revision {latest.revision} <Time at={latest.uploaded_at} />,
            while you were writing
          </>
        }
        action={
          <>
            <Button small onClick={onTake}>
              Drop mine, take revision {latest.revision}
            </Button>
            <Button small look="primary" onClick={onKeep}>
              Keep mine as the next
            </Button>
          </>
        }
      >
        Nothing of yours is lost. Compare the two, bring over what you need, then keep yours: it is saved on top.
      </Callout>
      <TwoTexts
        before={latest.content}
        after={draft.text}
        beforeLabel={`Revision ${latest.revision}, theirs`}
        afterLabel="What you have written"
      />
    </div>
  );
}
