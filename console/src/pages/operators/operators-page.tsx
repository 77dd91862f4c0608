import { Page } from '../../parts/page.tsx';

export function OperatorsPage() {
  return <Page title="Operators">{null}</Page>;
}
