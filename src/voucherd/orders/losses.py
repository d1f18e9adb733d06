"""Sales that were refused for their price: to the client just not available, to the operator with the reason."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from voucherd.money import in_eur
from voucherd.orders.rules.cart import Create
from voucherd.orders.rules.refusals import OffersNotAvailable

logger = structlog.get_logger(__name__)


class LossLog:
    """Counts them and says them."""

    def __init__(self) -> None:
        self.refused = 0

    def note(self, commands: Sequence[Create], answers: Sequence[object]) -> None:
        """Tell the operator of those among these answers."""
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, OffersNotAvailable) and answer.losses:
                self.refused += 1
                products = [
                    f"{one.slug}: {in_eur(one.price)} for {in_eur(one.cost)}" for one in answer.losses
                ]
                logger.warning("sale_at_a_loss_refused", company_id=command.company_id, products=products)
