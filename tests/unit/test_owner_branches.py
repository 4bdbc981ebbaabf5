"""Branches in the names of owners, and in grants."""

import pytest

from wellkept import Layer, authorization, codec
from wellkept.errors import Unauthorized
from wellkept.types import Grant, Owner

MAIN, DRAFT = Owner(Layer.USER, ("ada",)), Owner(Layer.USER, ("ada",), "draft")


def test_an_owner_has_one_name_per_branch() -> None:
    assert codec.decode_owner(codec.encode_owner(DRAFT)) == DRAFT != MAIN
    assert codec.encode_owner(MAIN) == '["user","ada"]'
    for text in ('["user","ada",{}]', '["user","ada",{"branch":""}]', '["user",{"branch":"a"},"ada"]', "[]"):
        with pytest.raises(codec.UNREADABLE):
            codec.decode_owner(text)


@pytest.mark.req("L11")
def test_a_grant_for_a_user_covers_no_branch() -> None:
    grant = Grant(owners=(MAIN,))
    authorization.check_covered(grant, MAIN)
    with pytest.raises(Unauthorized):
        authorization.check_covered(grant, DRAFT)
