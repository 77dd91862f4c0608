import { Page } from '../../parts/page.tsx';

export function DriftRecordPage() {
  return <Page title="Drift record">{null}</Page>;
}
