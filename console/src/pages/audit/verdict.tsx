import { useMutation } from '@tanstack/react-query';
import { ShieldCheck } from 'lucide-react';
import { verifyChain } from '../../api/audit.ts';
import { Button } from '../../parts/button.tsx';
import { Id } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Problem, Skeleton } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';

/** Computes the chain anew, and says whether it holds. */
export function Verdict() {
  const verify = useMutation({ mutationFn: () => verifyChain() });
  const { data, error, isPending } = verify;
  return (
    <>
      <Button icon={<ShieldCheck className="size-4" />} busy={isPending} onClick={() => verify.mutate()}>
        Verify
      </Button>
      <Dialog
        open={!verify.isIdle}
        onOpenChange={(open) => !open && verify.reset()}
        title={data === undefined ? 'Verifying the log' : data.ok ? 'The log is whole' : 'The log was changed'}
      >
        {isPending && <Skeleton className="h-20" />}
        <Problem error={error} />
        {data?.fault && (
          <div role="alert" className="mb-3 rounded-md bg-bad-soft px-3 py-2 text-bad text-sm">
            At place {data.fault.place} the chain does not fit: <Text text={data.fault.message} />. What stands there is
            not what was written. Compare it with an export or a backup from before.
          </div>
        )}
        {data && (
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1.5 text-sm">
            <dt className="text-muted">Events that fit</dt>
            <dd className="tabular">{data.verified.toLocaleString()}</dd>
            <dt className="text-muted">Begins after place</dt>
            <dd className="tabular">{data.anchor.place.toLocaleString()}</dd>
            <dt className="text-muted">Newest place</dt>
            <dd className="tabular">{data.head.place.toLocaleString()}</dd>
            <dt className="text-muted">Its hash</dt>
            <dd>
              <Id id={data.head.hash} length={16} />
            </dd>
            <dt className="text-muted">Waiting for a place</dt>
            <dd className="tabular">{data.unchained}</dd>
          </dl>
        )}
        {data?.ok && (
          <p className="mt-3 text-muted text-sm">
            Keep the hash of the newest place somewhere else. A log that was rewritten as a whole fits itself, but no
            longer holds that hash at that place.
          </p>
        )}
      </Dialog>
    </>
  );
}
