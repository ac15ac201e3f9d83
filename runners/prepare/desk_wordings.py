"""How customers ask: twenty wordings for each request, two for each of the ten wording pools.

A pool's customers use that pool's wordings only, so whoever splits by customer and wording holds out
both. Wordings say nothing about the order's status: the same sentence has to fit an order that may be
acted on and one that may not. Own text, written for this project.
"""

from __future__ import annotations

POOLS = 10

NO_LONGER_NEEDED: tuple[str, ...] = (
    "Please cancel my order, I don't need it any more.",
    "I changed my mind and no longer need these things. Cancel everything.",
    "This purchase isn't needed now, so call it off please.",
    "Hi, can you stop this order? My plans changed and I have no use for it.",
    "We already got one elsewhere. Kindly cancel what I bought.",
    "I'd like the order cancelled since there is no need for it these days.",
    "Scrap my order. I won't be needing any of it.",
    "Could the whole order be dropped? It has become unnecessary for me.",
    "Not needed after all! Take my order back off the books.",
    "My roommate owns all of this, I can do without. Cancel, thanks.",
)

ORDERED_BY_MISTAKE: tuple[str, ...] = (
    "I placed this order by mistake, please cancel it.",
    "Oops, I hit buy accidentally. Can you cancel?",
    "That purchase was an error on my side, kindly undo it.",
    "My kid pressed the button and ordered this. Cancel it, please.",
    "I never meant to buy these. Would you void the order?",
    "Wrong click! The order was unintentional, so please annul it.",
    "By accident I checked out the wrong basket. Get the order cancelled.",
    "This was ordered in error; I want it called off.",
    "I mistakenly submitted the order, make it go away please.",
    "Sorry, I confused the carts and bought this unintentionally. Cancel my order.",
)

MODIFY_ADDRESS: tuple[str, ...] = (
    "Please send my order to {address} instead.",
    "I moved. Change the shipping address to {address}.",
    "Can the parcel go to {address}? That is where I live now.",
    "The delivery address is wrong, it should be {address}.",
    "Update where this ships: {address}.",
    "I'd rather receive it at {address}, could you set that?",
    "Redirect the order to my new place, {address}.",
    "Hello, my flat has changed. Ship to {address} please.",
    "Kindly correct the destination of my purchase to {address}.",
    "Put {address} on the order as the place to deliver.",
    "For this order use {address}, not the old address.",
    "Would you mind shipping everything to {address}?",
    "New home, new address: {address}. Please adjust my order.",
    "I typed an outdated street. The right one is {address}.",
    "Have the courier bring it to {address} rather than to my former home.",
    "Let my order be dropped off at {address}.",
    "My office is better for parcels. Switch the address to {address}.",
    "I need the shipment rerouted towards {address}.",
    "Swap the address on file for this order with {address}, thanks.",
    "Since I relocated, the package must come to {address}.",
)

MODIFY_PAYMENT: tuple[str, ...] = (
    "Please charge my {method} for this order instead.",
    "I want to pay with {method}, can you switch it?",
    "Change how I pay for the order to {method}.",
    "Could you move the payment over to my {method}?",
    "Use {method} rather than what I paid with.",
    "The bill should go on my {method}, please update that.",
    "I picked the wrong way to pay. Make it {method}.",
    "Put the whole order on {method} now.",
    "Is it possible to settle this through {method}? Then do so.",
    "Kindly replace the payment method by {method}.",
    "My preference is {method}; bill the order there.",
    "Let me pay for it via {method} from here on.",
    "Hello, set {method} as the method for my purchase.",
    "Take the money from my {method}, not from the other one.",
    "I'd like the order paid by {method}.",
    "For tax reasons the payment has to be {method}. Adjust it.",
    "Swap the payment: {method} is what I want used.",
    "Refund what I paid and debit {method}.",
    "Would you transfer the charge onto {method} for me?",
    "Switch over to {method} when you bill these goods.",
)

MODIFY_ITEMS: tuple[str, ...] = (
    "Before it ships, make the {item} {new}. Use my {pay} for the difference.",
    "I'd like to modify the {item} I ordered to {new}, paying by {pay}.",
    "In my order, change the {item} to {new}. Settle it with {pay}.",
    "Can the {item} be altered to {new} ahead of shipping? My {pay} covers it.",
    "Edit my order: {item} with {new}, the gap goes on {pay}.",
    "The {item} I put in the order should have {new}. Bill {pay}.",
    "Please amend the {item} in the order so that it is {new}; {pay} for the balance.",
    "I selected the wrong {item}. Modify it to {new} and charge {pay}.",
    "Update the order line {item} to {new}, with {pay} for price changes.",
    "Could you adjust the ordered {item} into {new}? Take {pay}.",
    "My order has a {item}; it needs {new} instead. Pay through {pay}.",
    "Revise the {item} before sending it out: {new}. The {pay} pays.",
    "Don't ship the {item} as is, turn it into {new} using {pay}.",
    "While it is being packed, set the {item} to {new}. I pay by {pay}.",
    "Rework my order so the {item} comes as {new}, cost difference to {pay}.",
    "One correction to the order, {item}: {new}, please. Extra money from {pay}.",
    "Let the {item} on my order become {new} and use {pay} for it.",
    "I want the order's {item} modified, {new}. Any cost to my {pay}.",
    "Hi, fix the {item} I am waiting for to be {new}. Put it on {pay}.",
    "Have my {item} order changed towards {new}, with the rest by {pay}.",
)

RETURN: tuple[str, ...] = (
    "I want to return the {item}. Refund to my {refund}.",
    "Please take back the {item} and pay me on {refund}.",
    "The {item} isn't for me, I'm sending it back. Money to {refund}.",
    "Can I return my {item}? I'd like the refund on {refund}.",
    "Start a return for the {item}, refund by {refund}.",
    "I am unhappy with the {item} and wish to give it back. Credit {refund}.",
    "Help me send the {item} back, with the cash going to {refund}.",
    "Get me my money for the {item} via {refund}, I return it.",
    "Kindly arrange that the {item} goes back to you; reimburse {refund}.",
    "The {item} has to go back. My {refund} should receive the refund.",
    "I'd love to hand back the {item} for a refund through {refund}.",
    "How about a refund of the {item} to {refund}? I don't like it.",
    "Returning one thing, the {item}. Use {refund} for the money.",
    "I would like the {item} returned and {refund} credited.",
    "Open a refund request: {item}, to {refund}.",
    "We don't use the {item}, so back it goes. Repay into {refund}.",
    "Could you accept the {item} back and refund {refund}?",
    "Return label for the {item} please, {refund} gets the amount.",
    "Let me bring the {item} back against a payment to {refund}.",
    "My {item} disappoints. I ask for its return, refunded with {refund}.",
)

EXCHANGE: tuple[str, ...] = (
    "Please exchange the {item} for one with {new}. Charge my {pay}.",
    "I'd like to trade the {item} for {new}, difference on {pay}.",
    "Can I get the {item} with {new} in exchange for mine? Use {pay}.",
    "The {item} doesn't suit me. Exchange it, {new}, and bill {pay}.",
    "Swap the {item} I got for {new}. My {pay} takes the difference.",
    "Kindly replace the {item} you sent by {new}, paid with {pay}.",
    "I need another {item}: {new}. Exchange it and use {pay}.",
    "Would an exchange of the {item} to {new} work? I pay by {pay}.",
    "Give me {new} for the {item} that arrived, {pay} for the gap.",
    "Let's exchange: {item}, now with {new}. Settle through {pay}.",
    "I want a different {item}, {new}, for the one I have. {pay} is fine.",
    "Send {new} as a replacement of my {item} and debit {pay}.",
    "Could you switch the {item} I received against {new} via {pay}?",
    "For the {item} I would rather have {new}. Exchange, please, with {pay}.",
    "Take my {item} and send me {new} instead; cost goes to {pay}.",
    "Exchange request for the {item}: I wish {new}, money from {pay}.",
    "My {item} should be exchanged into {new}. Put it on {pay}.",
    "I'm after {new} in place of the {item} at home. Use {pay} please.",
    "Hello, trade in the {item} and ship {new}. Any extra by {pay}.",
    "Do me an exchange, the {item} against {new}, balance to {pay}.",
)

TRANSFER: tuple[str, ...] = (
    "I want to discuss becoming a supplier for your shop.",
    "My invoice needs a company tax number. Who can add it?",
    "The courier damaged my fence and I want compensation.",
    "Please repair the {item} under warranty.",
    "I have a legal question about your privacy terms.",
    "Can somebody install the {item} at my house?",
    "I'd like to order 300 pieces for my firm with a discount.",
    "A journalist wants an interview with your press office.",
    "Someone broke into my account, investigate it.",
    "I want to complain about how an employee spoke to me.",
    "Is there a job opening in your warehouse? I'd apply.",
    "Teach me how to program the {item}, it won't start.",
    "My bank disputes the charge and needs a signed letter.",
    "I need customs papers for taking the {item} abroad.",
    "The {item} hurt my hand. Where do I report an injury?",
    "Let me sell my own products on your site.",
    "Please match the price another store has for the {item}.",
    "I lost the manual and want an engineer to call me.",
    "Could you sponsor our school's sports day?",
    "I must speak to the data protection officer.",
)


def wordings(request: str, pool: int) -> list[tuple[str, str, str]]:
    """A pool's wordings of one request: (wording id, template, cancellation reason or "").

    Args:
        request: `transfer`, or a tool that a customer can ask for.
        pool: 0 to `POOLS` - 1.
    """
    if request == "cancel":
        return [
            (f"cancel-{pool}", NO_LONGER_NEEDED[pool], "no longer needed"),
            (f"cancel-{pool + POOLS}", ORDERED_BY_MISTAKE[pool], "ordered by mistake"),
        ]
    chosen = (pool, pool + POOLS)
    return [(f"{request}-{index}", _BY_REQUEST[request][index], "") for index in chosen]


_BY_REQUEST: dict[str, tuple[str, ...]] = {
    "modify_address": MODIFY_ADDRESS,
    "modify_payment": MODIFY_PAYMENT,
    "modify_items": MODIFY_ITEMS,
    "return": RETURN,
    "exchange": EXCHANGE,
    "transfer": TRANSFER,
}
